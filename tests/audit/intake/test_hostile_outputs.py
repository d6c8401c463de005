"""Outputs that are expensive to explain, sent to the real server: its processor time is bounded."""

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.arrival_checks import register_checked_tool
from tests.support.contracts import make_contract
from tests.support.event_requests import NDJSON, lines, new_batch_id
from tests.support.factories import Cast, make_call
from tests.support.hostile_outputs import HOSTILE, schema_of
from tests.support.server import LiveServer, web_process
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft
from tools_registry.schemas import ToolContract

pytestmark = pytest.mark.slow

BOUND_S = 0.3


@pytest.mark.parametrize("attack", HOSTILE)
@pytest.mark.generated(2)
def test_processor_time_of_a_request_is_bounded(
    acme: Cast, live_server: LiveServer, attack: str
) -> None:
    """12 KB took 13.6 s when they arrived, and a check of a draft 7.3 s."""
    schema, wrong = schema_of(HOSTILE[attack]), HOSTILE[attack].wrong
    tool = register_checked_tool(acme.tenant, output_schema=schema)
    _, key = create_key(acme.tenant, "ingest", [Scope.INGEST])
    named = {"Authorization": f"Bearer {key}", "Content-Type": NDJSON}

    def arrive(outputs: list[list[Any]]) -> float:
        calls = [make_call(output={"status": "ok", "data": {"data": each}}) for each in outputs]
        body = lines(event for call in calls for event in call)
        named["Idempotency-Key"] = new_batch_id()
        return seconds(live_server, "/api/v1/events", body, named)

    with tenant_scope(acme.tenant.id):
        contract = ToolContract.model_validate(make_contract(name=tool.name, output_schema=schema))
        create_draft(tool, contract, Publisher(acme.editor))
    client = Client()
    client.force_login(acme.editor)
    session = client.cookies["sessionid"].value
    form = {
        "X-CSRFToken": "x" * 32,
        "Cookie": f"sessionid={session}; csrftoken={'x' * 32}",
        "Content-Type": MULTIPART_CONTENT,
    }

    def check(outputs: list[list[Any]]) -> float:
        typed = {
            "revision": "1",
            "description": "d",
            "input_schema": "{}",
            "output_schema": json.dumps(schema),
            "output_examples": "\n---\n".join(json.dumps({"data": each}) for each in outputs),
            "meta": "{}",
        }
        body = encode_multipart(BOUNDARY, typed)
        return seconds(live_server, f"/tools/{tool.pk}/draft/check", body, form)

    for send in (arrive, check):
        send([[]])  # the schema is compiled once in each process
        for count in (1, 8):
            assert send([wrong] * count) < BOUND_S, (send, count)


def seconds(server: LiveServer, path: str, body: bytes, headers: Mapping[str, str]) -> float:
    """Post to the server; the processor time that its process took."""
    process = web_process(server)
    parts = urlsplit(server.url)
    before = sum(process.cpu_times()[:2])
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as to:
        to.request("POST", path, body, dict(headers))
        answer = to.getresponse()
        text = answer.read()
    assert answer.status == 200, text
    return sum(process.cpu_times()[:2]) - before
