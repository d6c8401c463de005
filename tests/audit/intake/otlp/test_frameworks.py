"""Real frameworks, installed from the package index, send their spans.

Only environment variables configure each of them, as docs/frameworks says. What they send is also
kept as fixtures, so that a failure shows whether Tooltrail or the framework changed.
"""

import re
from pathlib import Path

import pytest
from django.utils import timezone

from audit.log.payload import read_events
from audit.models import Invocation
from config.instance import BASE_DIR
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp.environment import run_framework
from tests.support.otlp.expectations import EXPECTATIONS
from tests.support.otlp_requests import (
    JSON,
    PROTOBUF,
    fixture,
    post,
)
from tests.support.server import LiveServer

PAGES = BASE_DIR / "docs" / "frameworks"


@pytest.mark.generated(3)
@pytest.mark.slow
@pytest.mark.parametrize("script", EXPECTATIONS)
def test_each_framework_call_appears_once(acme: Cast, live_server: LiveServer, script: str) -> None:
    expect, _ = EXPECTATIONS[script]
    run_framework(script, live_server.url, _header(acme))

    expect(acme.tenant)


@pytest.mark.slow
def test_bearer_token_is_accepted(acme: Cast, live_server: LiveServer) -> None:
    header = f"Authorization=Bearer%20{make_ingest_key(acme.tenant)}"
    run_framework("plain_otel.py protobuf", live_server.url, header)

    EXPECTATIONS["plain_otel.py protobuf"][0](acme.tenant)


@pytest.mark.generated(1)
@pytest.mark.slow
@pytest.mark.parametrize("page", ["opentelemetry.md", "mcp.md"])
def test_documented_program_runs_unchanged(
    acme: Cast, live_server: LiveServer, tmp_path: Path, page: str
) -> None:
    """The first one of the page. Snippets used to contain undefined variables."""
    program = re.findall(r"^```python\n(.*?)^```$", (PAGES / page).read_text(), re.DOTALL | re.M)
    assert program
    (tmp_path / "program.py").write_text(program[0])
    run_framework(str(tmp_path / "program.py"), live_server.url, _header(acme))

    with tenant_scope(acme.tenant.id):
        (call,) = Invocation.objects.for_tenant(acme.tenant.id)
        assert (call.tool_name, call.state) == ("get_weather", "ok")
        assert call.start_batch_id is not None
        assert call.start_pos is not None
        (event,) = read_events(acme.tenant.id, [(call.start_batch_id, call.start_pos)]).values()
        assert b"London" in (event.raw or b"")


@pytest.mark.parametrize("script", EXPECTATIONS)
def test_captured_requests_produce_the_same_calls(acme: Cast, script: str) -> None:
    expect, names = EXPECTATIONS[script]
    key = make_ingest_key(acme.tenant)
    bodies = [(fixture(name, timezone.now()), _media_type(name)) for name in names]
    for body, media_type in (*bodies, *bodies):  # sent twice, as an exporter does when it retries
        answer = post(key, body, media_type)
        assert (answer.status_code, answer.rejected) == (200, 0)

    expect(acme.tenant)


def _header(cast: Cast) -> str:
    return f"x-api-key={make_ingest_key(cast.tenant)}"


def _media_type(name: str) -> str:
    return JSON if name.endswith(".json") else PROTOBUF
