"""Real receivers of streams on this machine: HTTPS and Splunk's collector, each with TLS."""

import ipaddress
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256

HOST = "127.0.0.1"
TOKEN = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True)
class Certificate:
    """A certificate for this machine that signs itself, and its key, in PEM."""

    pem: str
    key: str

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The files of both."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        certificate.write_text(self.pem)
        key.write_text(self.key)
        return certificate, key


@cache
def certificate(common_name: str = "siem.test", *, is_weak: bool = False) -> Certificate:
    """The certificate of this session's receivers; by another name, one of a client.

    TLS takes no key as short as a weak one.
    """
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = ec.generate_private_key(ec.SECP256R1())
    if is_weak:
        key = rsa.generate_private_key(65_537, 1_024)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_address(HOST)),
        x509.DNSName("localhost"),
        x509.DNSName(common_name),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    return Certificate(pem.decode(), private.decode())


@dataclass
class HttpsReceiver:
    """What a receiver got. `answers` are the next statuses, 0 to break the connection; then 200."""

    url: str = ""
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    """Of requests that were answered with 2xx."""
    heads: list[dict[str, str]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    is_splunk: bool = False
    has_acks: bool = True
    unacknowledged: int = 0
    """How often the indexer says that an event is not written yet."""
    paths: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records, in the order in which they came."""
        return [each for body in self.bodies for each in self._records(body)]

    @property
    def indexes(self) -> list[int]:
        """Their ledger indexes."""
        return [each["tooltrail"]["index"] for each in self.records if "tooltrail" in each]

    def _records(self, body: bytes) -> Iterator[dict[str, Any]]:
        text, at, decoder = body.decode(), 0, json.JSONDecoder()
        while at < len(text):
            document, at = decoder.raw_decode(text, at)
            while text[at : at + 1] == "\n":
                at += 1
            yield document["event"] if self.is_splunk else document

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """The status and the document for a request."""
        status = self.answers.pop(0) if self.answers else 200
        if status != 200:
            return status, {"text": "no", "code": 9}
        if not self.is_splunk:
            self.bodies.append(body)
            return 200, {}
        if headers.get("authorization") != f"Splunk {TOKEN}":
            return 403, {"text": "Invalid token", "code": 4}
        if self.has_acks and "x-splunk-request-channel" not in headers:
            return 400, {"text": "Data channel is missing", "code": 10}
        if path.startswith("/services/collector/ack?channel="):
            is_written = not self.unacknowledged
            self.unacknowledged = max(0, self.unacknowledged - 1)
            return 200, {"acks": {str(each): is_written for each in json.loads(body)["acks"]}}
        if path != "/services/collector/event":
            return 404, {"text": "not found"}
        self.bodies.append(body)
        taken: dict[str, Any] = {"text": "Success", "code": 0}
        return 200, taken | ({"ackId": len(self.bodies) - 1} if self.has_acks else {})


@contextmanager
def https_receiver(*, is_splunk: bool = False, has_acks: bool = True) -> Iterator[HttpsReceiver]:
    """Receive over TLS until the block ends."""
    receiver = HttpsReceiver(is_splunk=is_splunk, has_acks=has_acks)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                receiver.paths.append(self.path)
                receiver.heads.append(headers)
                status, document = receiver.answer(self.path, headers, body)
            if not status:
                self.close_connection = True
                return
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(Handler) as port:
        receiver.port, receiver.url = port, f"https://{HOST}:{port}"
        yield receiver


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], port: int = 0, own: Certificate | None = None
) -> Iterator[int]:
    """Serve over TLS in threads until the block ends; the port."""
    server = ThreadingHTTPServer((HOST, port), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        context.load_cert_chain(*(own or certificate()).write(Path(folder)))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
