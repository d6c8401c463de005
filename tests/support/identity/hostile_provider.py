"""A provider that answers whatever a test wants: with real keys, over real HTTP, on loopback."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from config import env

CLIENT = "tooltrail"


@dataclass
class HostileProvider:
    """What it answers; a test changes it. Without a change it is an honest provider."""

    port: int
    key_id: str = "one"
    key: Any = field(default_factory=lambda: generate_private_key(SECP256R1()))
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    """Members of the id_token that replace those of an honest one; None: left out."""
    userinfo: dict[str, Any] | None = None
    """None: it has none."""
    discovery: dict[str, Any] = field(default_factory=dict[str, Any])
    sign: "Callable[[dict[str, Any], HostileProvider], str] | None" = None
    bodies: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Answers by path, as they are."""
    exchanged: list[dict[str, list[str]]] = field(default_factory=list[dict[str, list[str]]])
    """What was sent to the token endpoint."""
    nonces: dict[str, str] = field(default_factory=dict[str, str])
    """By code."""

    @property
    def issuer(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def authorize(self, address: str) -> dict[str, str]:
        """What a browser that was sent to `address` brings back: a code, and the state."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.nonces)}"
        self.nonces[code] = asked["nonce"]
        assert asked["code_challenge_method"] == "S256"
        assert asked["response_type"] == "code"
        return {"code": code, "state": asked["state"]}

    def answer(self, path: str, form: Mapping[str, list[str]]) -> bytes:
        """The body for a request."""
        if path in self.bodies:
            return self.bodies[path]
        match path:
            case "/.well-known/openid-configuration":
                places = {
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/jwks",
                }
                if self.userinfo is not None:
                    places["userinfo_endpoint"] = f"{self.issuer}/userinfo"
                document: Any = {"issuer": self.issuer, **places, **self.discovery}
            case "/jwks":
                document = {"keys": [self.public_key()]}
            case "/token":
                self.exchanged.append(dict(form))
                document = {"access_token": "x", "token_type": "Bearer"}
                document["id_token"] = self.id_token(form["code"][0])
            case "/userinfo":
                document = self.userinfo
            case _:
                document = {}
        return json.dumps(document).encode()

    def public_key(self) -> dict[str, Any]:
        """The key as it is published."""
        published = jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {**published, "kid": self.key_id, "use": "sig", "alg": "ES256"}

    def id_token(self, code: str) -> str:
        """An id_token of now, with what a test replaced."""
        now = int(time.time())
        honest = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "nonce": self.nonces[code],
            "preferred_username": "ada@example.com",
            "groups": ["staff"],
        }
        claims = {
            name: value for name, value in (honest | self.claims).items() if value is not None
        }
        if self.sign is not None:
            return self.sign(claims, self)
        return jwt.encode(claims, self.key, "ES256", headers={"kid": self.key_id})


@contextmanager
def hostile_provider() -> Iterator[HostileProvider]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # the library's name
            self._answer({})

        def do_POST(self) -> None:  # likewise
            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(parse_qs(sent))

        def _answer(self, form: Mapping[str, list[str]]) -> None:
            body = provider.answer(urlsplit(self.path).path, form)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider = HostileProvider(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def opened_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostileProvider]:
    """One at an address that the operator opened."""
    from django.conf import settings  # this module is imported before Django is set up

    with hostile_provider() as one:
        monkeypatch.setenv("TOOLTRAIL_IDENTITY_ALLOW", f"127.0.0.1:{one.port}")
        monkeypatch.setattr(settings, "IDENTITY_ALLOW", env.openings("TOOLTRAIL_IDENTITY_ALLOW"))
        yield one
