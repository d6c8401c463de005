"""The small web server for the demo's tools: pages, weather and jobs, with faults on request.

It serves the repository's own documents. The URL can request a fault as real upstreams have them:
503 until a retry, 429 with Retry-After, late answers, broken connections, JSON that breaks its
schema.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Weather = dict[str, Any]


def _is_text(report: Weather) -> None:
    report["temperature"] = str(report["temperature"])


def _is_prose(report: Weather) -> None:
    report["humidity"] = "rather damp"


def _is_missing(report: Weather) -> None:
    del report["description"]


def _is_chatty(report: Weather) -> None:
    report["debug"] = {"backend": "wx-7", "took": "12ms"}


def _is_kelvin(report: Weather) -> None:
    report["unit"] = "kelvin"


def _is_renamed(report: Weather) -> None:
    report["station"] = "heathrow"


def _is_impossible(report: Weather) -> None:
    report["humidity"] = 140


# Flaws of a weather report, by their names in the URL; each breaks the schema in one way.
FLAWS: dict[str, Callable[[Weather], None]] = {
    "text": _is_text,
    "prose": _is_prose,
    "missing": _is_missing,
    "chatty": _is_chatty,
    "kelvin": _is_kelvin,
    "renamed": _is_renamed,
    "impossible": _is_impossible,
}


class Upstream:
    """The server, on a free loopback port, until `close()`.

    `pace` divides every delay, because history runs faster than real time.
    """

    def __init__(self, documents: list[Path], pace: float) -> None:
        self.documents = documents
        self.pace = pace
        self.tries: dict[str, int] = {}
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"upstream": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def sleep(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000 / self.pace)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: with `mood=slow`, clients are meant to give up waiting."""


class _Handler(BaseHTTPRequestHandler):
    upstream: Upstream
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        options = {name: values[0] for name, values in parse_qs(address.query).items()}
        seed = random.Random(self.path)  # the same request takes the same time
        self.upstream.sleep(seed.lognormvariate(4.6, 0.5))
        kind, _, name = address.path.strip("/").partition("/")
        match kind:
            case "pages":
                self._page(name, options)
            case "weather":
                self._weather(options)
            case "jobs":
                # The scheduler has a state (`held`) that the tool's schema does not list.
                self._json(200, {"job": name, "state": "held" if name == "backup" else "running"})
            case _:
                self._json(404, {"error": "no such page"})

    def _page(self, name: str, options: dict[str, str]) -> None:
        with self.upstream.lock:
            tries = self.upstream.tries[self.path] = self.upstream.tries.get(self.path, 0) + 1
        mood = options.get("mood")
        if mood == "unavailable" and tries % 2:
            self._json(503, {"error": "backend restarting"}, {"Retry-After": "0.5"})
        elif mood == "limited" and tries % 2:
            self._json(429, {"error": "too many requests"}, {"Retry-After": "2"})
        elif mood == "broken":
            # Announce more than is sent, then hang up.
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"<!doctype html>")
            self.close_connection = True
        else:
            if mood == "slow":
                self.upstream.sleep(4_000)
            documents = self.upstream.documents
            document = documents[int(name) % len(documents)]
            self._answer(200, document.read_bytes(), "text/plain; charset=utf-8", {})

    def _weather(self, options: dict[str, str]) -> None:
        seed = random.Random(options["city"])
        report: Weather = {
            "city": options["city"],
            "station": f"EG{seed.randrange(10, 99)}",
            "temperature": round(seed.uniform(-4, 31), 1),
            "unit": "celsius",
            "humidity": seed.randrange(20, 96),
            "description": seed.choice(["Sunny", "Overcast", "Light rain", "Fog"]),
        }
        if flaw := options.get("flaw"):
            FLAWS[flaw](report)
        self._json(200, report)

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._answer(status, json.dumps(body).encode(), "application/json", headers or {})

    def _answer(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, so that only the demo's own output is visible."""
