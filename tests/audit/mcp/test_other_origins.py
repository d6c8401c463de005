"""Clients of `/mcp` that run in a browser, from an origin that the operator named and another."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.test import Client, override_settings
from playwright.sync_api import Browser

from audit.mcp.protocol import WITH_HANDSHAKE
from tests.support.factories import Cast
from tests.support.mcp_agent import Agent
from tests.support.server import running_server

ORIGIN = "https://inspector.example.org"
_SENT = (
    *("authorization", "content-type", "last-event-id"),
    *("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
)
# What a client of 2025 does: handshake, stream, tool, end of the session.
_CLIENT = """
async ({ address, key, version }) => {
  const shared = { Authorization: `Bearer ${key}`, Accept: "application/json, text/event-stream" };
  const sent = (method, headers, body) => fetch(address, { method, headers, body });
  const post = (headers, id, method, params) => sent(
    "POST",
    { ...shared, ...headers, "Content-Type": "application/json" },
    JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  );
  const clientInfo = { name: "page", version: "1" };
  try {
    const refused = await sent("POST", { Authorization: "Bearer tt_x" }, "{}");
    const begun = await post({}, 1, "initialize",
      { protocolVersion: version, capabilities: {}, clientInfo });
    const session = {
      "Mcp-Session-Id": begun.headers.get("Mcp-Session-Id"), "Mcp-Protocol-Version": version,
    };
    const stream = await sent("GET", { ...shared, ...session, "Last-Event-ID": "1" });
    const called = await post(session, 2, "tools/call", { name: "latency" });
    const ended = await sent("DELETE", { ...shared, ...session });
    return {
      session: session["Mcp-Session-Id"], answer: await called.json(),
      authenticate: refused.headers.get("WWW-Authenticate"),
      statuses: [refused.status, begun.status, stream.status, called.status, ended.status],
    };
  } catch (error) {
    return { error: String(error) };
  }
}
"""


def preflight(origin: str, method: str = "POST", path: str = "/mcp") -> Any:
    """The answer to what a browser asks before a request; it sends no key with it."""
    return Client().options(
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": ",".join(_SENT),
        },
    )


@override_settings(CORS_ORIGINS=[ORIGIN])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_named_origin_may_send_what_clients_send(method: str) -> None:
    asked = preflight(ORIGIN, method)
    assert asked.status_code == 204
    assert asked["Access-Control-Allow-Origin"] == ORIGIN
    assert method in asked["Access-Control-Allow-Methods"].split(", ")
    allowed = asked["Access-Control-Allow-Headers"].lower().split(", ")
    assert set(_SENT) <= set(allowed)
    assert "Access-Control-Allow-Credentials" not in asked


@override_settings(CORS_ORIGINS=[ORIGIN])
@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", f"{ORIGIN}.evil.example", "null", ORIGIN.upper(), ""]
)
def test_other_origins_may_not(acme: Cast, origin: str) -> None:
    answers = [preflight(origin), Agent(acme.tenant).send("tools/list", Origin=origin)]
    assert {answer.status_code for answer in answers} <= {403, 405}
    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("Access-Control-Allow")]


@override_settings(CORS_ORIGINS=[ORIGIN])
def test_only_these_paths_are_open() -> None:
    for path in ("/mcpx", "/login", "/.well-known/x"):
        assert "Access-Control-Allow-Origin" not in preflight(ORIGIN, path=path)


def test_no_origin_is_named_by_default() -> None:
    asked = preflight(ORIGIN)
    assert not [name for name in asked.headers if name.startswith("Access-Control-")]


class _Page(BaseHTTPRequestHandler):
    """An empty page. It is on this machine, as pages elsewhere may not connect to it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *about: object) -> None:
        """Say nothing."""


@contextmanager
def an_origin() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_runs_a_client(browser: Browser, acme: Cast) -> None:
    with (
        an_origin() as named,
        an_origin() as other,
        running_server(TOOLTRAIL_CORS_ORIGINS=named) as server,
    ):
        key, version = Agent(acme.tenant).key, WITH_HANDSHAKE[0]
        given = {"address": f"{server.url}/mcp", "key": key, "version": version}
        results = []
        for origin in (named, other):
            page = browser.new_page()
            page.goto(origin)
            results.append(page.evaluate(_CLIENT, given))
            page.close()
    told, refused = results
    assert told["statuses"] == [401, 200, 405, 200, 405]
    assert told["session"]
    assert told["authenticate"].startswith("Bearer")
    assert told["answer"]["result"]["structuredContent"]["notes"]
    assert refused == {"error": "TypeError: Failed to fetch"}
