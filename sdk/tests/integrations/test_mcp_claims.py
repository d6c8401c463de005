"""What a server believes of a client that says it has recorded a call, and what clients record.

With real clients and servers, `tests/sdk_js/test_mcp_pairs.py` tests it in all pairs.
"""

import asyncio
import hmac
from collections.abc import Mapping
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field
from tooltrail.integrations import mcp_claims
from tooltrail.integrations.mcp import TooltrailMiddleware, record_client
from tooltrail.integrations.mcp_claims import MEMBER, believe, make_claim
from tooltrail.spool import SpoolFullError
from tooltrail.testing import MemoryTrail
from tooltrail.tools.canonical import canonical_stringify

ARGS = {"city": "Łódź", "days": 2.0}


@pytest.fixture
def trail() -> MemoryTrail:
    return MemoryTrail(clock=None, ids=None)


def claimed(trail: MemoryTrail, **more: Any) -> dict[str, Any]:
    """The parameters of a request whose call the client has recorded."""
    call = trail.begin("weather", ARGS)
    params = {"name": "weather", "arguments": ARGS, **more}
    return params | {"_meta": {"progressToken": 1, MEMBER: make_claim(trail, call, params)}}


def forged(trail: MemoryTrail, call_id: Any, trace_id: Any) -> dict[str, Any]:
    """Parameters with a claim that has the right proof, whatever it says."""
    call = {"args": ARGS, "id": call_id, "tool": "weather", "trace": trace_id}
    key = str(trail.settings.api_key).encode()
    proof = hmac.new(key, canonical_stringify(call).encode(), sha256).hexdigest()
    claim = {"invocation_id": call_id, "trace_id": trace_id, "proof": proof}
    return {"name": "weather", "arguments": ARGS, "_meta": {MEMBER: claim}}


def test_claim_is_believed_once_and_by_its_own_key(trail: MemoryTrail) -> None:
    params = claimed(trail)
    foreign = MemoryTrail(clock=None, ids=None)
    object.__setattr__(foreign.settings, "api_key", "another")
    assert believe(foreign, params) is None
    claim = believe(trail, params)
    assert claim is not None
    [start] = trail.events
    assert claim == (start["invocation_id"], start["trace_id"])
    assert believe(trail, params) is None, "the same request again is another call"


def test_claim_names_the_round_of_its_call(trail: MemoryTrail) -> None:
    params = claimed(trail, requestState="s1")
    assert believe(trail, params | {"requestState": "s2"}) is None
    assert believe(trail, {k: v for k, v in params.items() if k != "requestState"}) is None
    assert believe(trail, params) is not None


def test_what_a_claim_does_not_name_is_not_believed(trail: MemoryTrail) -> None:
    params = claimed(trail)
    claim = params["_meta"][MEMBER]
    assert believe(trail, params | {"name": "other"}) is None
    assert believe(trail, params | {"arguments": ARGS | {"days": 3}}) is None
    values: list[Any] = ["", None, 7, [], "x" * 100_000]
    wrong: list[Any] = [
        *({**claim, name: value} for name in claim for value in values),
        *({k: v for k, v in claim.items() if k != name} for name in claim),
        {**claim, "proof": claim["proof"].upper()},
        {**claim, "proof": claim["proof"] + "\n"},
        {**claim, "proof": "é" * 64},
        {**claim, "trace_id": "another"},
        *(None, "", [], 7, True),
    ]
    for each in wrong:
        assert believe(trail, params | {"_meta": {MEMBER: each}}) is None, each
    metas: list[Any] = [None, [], "x", {}]
    for meta in metas:
        assert believe(trail, params | {"_meta": meta}) is None, meta
    assert believe(trail, params) is not None, "none of these used it up"


@pytest.mark.parametrize(
    ("call_id", "trace_id"),
    [
        ("{id}", "x" * 129),
        ("{id}", ""),
        ("{ID}", "x"),
        ("{id}x", "x"),
        ("x" * 36, "x"),
        ("00000000-0000-4000-8000-000000000001", "x"),
        ("00000000-0000-7000-8000-000000000001", "x"),  # of 1970
        ("ffffffff-ffff-7fff-bfff-ffffffffffff", "x"),
    ],
)
def test_ids_of_another_form_or_time_are_not_believed(
    trail: MemoryTrail, call_id: str, trace_id: str
) -> None:
    own = trail.begin("weather", ARGS).id
    assert believe(trail, forged(trail, own, "x")) is not None
    made = call_id.format(id=own, ID=own.upper())
    assert believe(trail, forged(trail, made, trace_id)) is None


def test_only_so_many_claims_are_remembered(
    trail: MemoryTrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_claims, "_REMEMBERED_MAX", 3)
    monkeypatch.setattr(mcp_claims, "_believed", {})
    for _ in range(10):
        assert believe(trail, claimed(trail)) is not None
    assert len(mcp_claims._believed) == 3


def serve(trail: MemoryTrail, params: Mapping[str, Any]) -> None:
    """Let a middleware run a tool that makes one call."""
    peer = SimpleNamespace(client_params=None)
    ctx = SimpleNamespace(method="tools/call", params=params, session=peer, protocol_version="v")

    async def tool(ctx: Any) -> dict[str, Any]:
        with trail.record("inner", {}):
            return {"content": []}

    asyncio.run(TooltrailMiddleware(trail)(ctx, tool))


def test_server_nests_in_the_call_that_it_believes(trail: MemoryTrail) -> None:
    serve(trail, claimed(trail))
    begun, inner, _ = trail.events
    assert inner["tool_name"] == "inner"
    assert inner["parent_invocation_id"] == begun["invocation_id"]
    assert inner["trace_id"] == begun["trace_id"]


@pytest.mark.parametrize("meta", [None, {}, {MEMBER: 7}, {MEMBER: {"proof": "x"}}])
def test_server_records_a_call_of_a_client_that_claims_nothing(
    trail: MemoryTrail, meta: Any
) -> None:
    params = {"name": "weather", "arguments": ARGS}
    serve(trail, params if meta is None else params | {"_meta": meta})
    outer, inner, _, end = trail.events
    assert (outer["tool_name"], end["is_error"]) == ("weather", False)
    assert inner["parent_invocation_id"] == outer["invocation_id"]


class Params(BaseModel):
    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class Request(BaseModel):
    method: str = "tools/call"
    params: Params


class MCPError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message, None)
        self.code, self.message = code, message


class Session:
    """As much of a client's session as is used. It answers with `answer`, or raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.sent: list[Request] = []
        self._client_info = SimpleNamespace(name="desk", version="2")
        self.server_info = None
        self.protocol_version = "2026-07-28"

    async def send_request(self, request: Request, timeout: float) -> Any:
        self.sent.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def asked(meta: dict[str, Any] | None = None) -> Request:
    return Request(params=Params.model_validate({"name": "w", "arguments": ARGS, "_meta": meta}))


def test_client_claims_what_it_has_recorded(trail: MemoryTrail) -> None:
    session = Session({"content": [{"type": "text", "text": "ok"}]})
    request = asked({"progressToken": 7})
    assert record_client(trail, session) is session
    answer = asyncio.run(session.send_request(request, timeout=3))
    assert answer is session.answer
    start, end = trail.events
    assert end["mcp"] == {
        "client": {"name": "desk", "version": "2"},
        "protocol_version": "2026-07-28",
    }
    assert (end["output"]["data"], end["is_error"]) == (session.answer, False)
    [sent] = session.sent
    assert sent.params.meta is not None and sent.params.meta["progressToken"] == 7
    claim = believe(trail, sent.params.model_dump(by_alias=True))
    assert claim is not None and claim.invocation_id == start["invocation_id"]
    assert request.params.meta == {"progressToken": 7}, "the caller's request is as it was"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (MCPError(-32602, "unknown tool"), "FATAL", "unknown tool"),
        (MCPError(-32001, "Request 'tools/call' timed out"), "TIMEOUT", "Request"),
        (MCPError(-32000, "Connection closed"), "RETRYABLE", "Connection closed"),
        (ValueError("no such thing"), "FATAL", "no such thing"),
    ],
)
def test_client_records_why_a_request_failed(
    trail: MemoryTrail, error: Exception, kind: str, message: str
) -> None:
    session = record_client(trail, Session(error))
    with pytest.raises(type(error)) as raised:
        asyncio.run(session.send_request(asked(), 3))
    assert raised.value is error
    _, end = trail.events
    detail = end["output"]["error"]
    assert end["is_error"] is True
    assert (detail["type"], message in detail["message"]) == (kind, True)
    assert "None" not in detail["message"]


def test_client_that_cannot_record_a_call_does_not_send_it(
    trail: MemoryTrail, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = MemoryTrail()
    monkeypatch.setattr(off, "_append_to", lambda: None)
    session = record_client(off, Session({"content": []}))
    asyncio.run(session.send_request(asked(), 3))
    assert session.sent[0].params.meta is None, "a call that is not recorded is not claimed"

    full = MemoryTrail(when_full="raise")
    monkeypatch.setattr(full, "_append_to", lambda: lambda line: False)
    refused = record_client(full, Session({"content": []}))
    with pytest.raises(SpoolFullError):
        asyncio.run(refused.send_request(asked(), 3))
    assert refused.sent == []


def test_a_client_of_another_kind_is_refused(trail: MemoryTrail) -> None:
    with pytest.raises(TypeError, match="mcp 2"):
        record_client(trail, object())
