"""The page of skipped spans, and what the empty overview says of them."""

from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, post, request, span
from tests.support.pages import signed_in


def test_page_names_skipped_spans_and_why(acme: Cast, globex: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    post(
        key,
        request(
            span("run <b>tool</b>", attributes={"acme.tool.name": "get_weather"}),
            span("GET /users", attributes={}),
            span("broken", spanId=""),
            scope="acme.agent",
        ),
        JSON,
    )
    client = signed_in(acme.viewer)

    page = client.get("/skipped/").content.decode()
    assert "run &lt;b&gt;tool" in page
    assert "GET /users" in page
    assert "acme.agent" in page
    assert "without a valid trace id and span id" in page

    named = client.get("/skipped/?reason=unmarked").content.decode()
    assert "run &lt;b&gt;tool" in named
    assert "GET /users" not in named
    assert "No spans were skipped for this reason" not in named
    assert "No skipped spans" in signed_in(globex.viewer).get("/skipped/").content.decode()


def test_empty_overview_says_that_spans_arrived(acme: Cast) -> None:
    client = signed_in(acme.viewer)
    assert "was a tool call" not in client.get("/").content.decode()

    key = make_ingest_key(acme.tenant)
    tool_like = span("run_tool", attributes={"acme.tool.name": "get_weather"})
    post(key, request(tool_like, span("GET", attributes={})), JSON)

    for address in ("/", "/traces/"):
        page = " ".join(client.get(address).content.decode().split())
        assert "2 spans arrived, and none was a tool call, although 1 span named a tool" in page
        assert 'href="/skipped/"' in page

    post(key, request(span()), JSON)
    assert "was a tool call" not in client.get("/").content.decode()
