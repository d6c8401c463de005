"""Tokens of models' answers: stored once, with what the spans above say, in any order."""

import itertools
from typing import Any

import pytest
from django.db import connection

from audit.sql.run import Statements
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, post, request, span

TRACE = "0af7651916cd43dd8448eb211c80319c"
AGENT, FRAMEWORK, CLIENT, TOOL, INSIDE = range(1, 6)
TOKENS = ("input_tokens", "cached_tokens", "written_tokens", "output_tokens")
NAMES = ("provider", "model", "agent", "agent_version", "run_id", *TOKENS, "is_inner")


def numbered(number: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
    above = {"parentSpanId": f"{parent:016x}"} if parent else {}
    ids = {"traceId": TRACE, "spanId": f"{number:016x}", **above}
    return span(name, **ids, attributes=attributes)


def answer(number: int, parent: int, took: int, **attributes: Any) -> dict[str, Any]:
    marks = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": {"intValue": took},
        "gen_ai.usage.output_tokens": {"intValue": 7},
    }
    return numbered(number, parent, "chat gpt-5", **(marks | attributes))


def run() -> dict[int, dict[str, Any]]:
    """An agent's answer, reported by its framework and by the client; a tool asks a model, too."""
    return {
        AGENT: numbered(
            AGENT,
            0,
            "invoke_agent main",
            **{
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "main",
                "gen_ai.agent.version": "3",
                "gen_ai.conversation.id": "c-1",
                "gen_ai.usage.input_tokens": {"intValue": 9_999},  # the sum of its answers
            },
        ),
        FRAMEWORK: answer(FRAMEWORK, AGENT, 100),
        CLIENT: answer(CLIENT, FRAMEWORK, 100),
        TOOL: numbered(
            TOOL,
            FRAMEWORK,
            "execute_tool look_up",
            **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"},
        ),
        INSIDE: answer(INSIDE, TOOL, 50),
    }


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def send(key: str, *spans: dict[str, Any]) -> None:
    sent = post(key, request(*spans, scope="agent"), JSON)
    assert (sent.status_code, sent.rejected) == (200, 0)


def stored(cast: Cast) -> list[dict[str, Any]]:
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(NAMES)} FROM llm_usage ORDER BY span_uuid")
        return [dict(zip(NAMES, row, strict=True)) for row in cursor.fetchall()]


def check(cast: Cast) -> None:
    """The framework's answer counts and the client's does not; the tool's is one of its own."""
    found = stored(cast)
    assert len(found) == 3
    for one in found:
        assert (one["provider"], one["model"]) == ("openai", "gpt-5")
        assert (one["agent"], one["agent_version"], one["run_id"]) == ("main", "3", "c-1")
    counted = sorted(one["input_tokens"] for one in found if not one["is_inner"])
    assert counted == [50, 100]


def test_an_answer_counts_once_and_has_its_agent_in_any_order(acme: Cast, key: str) -> None:
    spans = run()
    send(key, *spans.values())

    check(acme)
    send(key, *spans.values())
    check(acme)


ORDERS = [
    order
    for order in itertools.permutations((AGENT, FRAMEWORK, CLIENT, TOOL, INSIDE))
    # A tool's span that says nothing of agent and conversation closes no gap below them.
    if order.index(TOOL) < max(order.index(AGENT), order.index(INSIDE))
]


@pytest.mark.generated(3)
@pytest.mark.parametrize("order", ORDERS[::9])
def test_each_span_in_a_request_of_its_own(acme: Cast, key: str, order: tuple[int, ...]) -> None:
    spans = run()
    for number in order:
        send(key, spans[number])

    check(acme)


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"gen_ai.usage.cache_read.input_tokens": {"intValue": 90}}, (100, 90, 0, 7)),
        # Anthropic's own counts: those of the cache are beside the others.
        (
            {
                "gen_ai.usage.cache_read.input_tokens": {"intValue": 900},
                "gen_ai.usage.cache_creation.input_tokens": {"intValue": 50},
            },
            (1050, 900, 50, 7),
        ),
        ({"gen_ai.usage.input_tokens": {"intValue": -4}}, (0, 0, 0, 7)),
        ({"gen_ai.usage.input_tokens": "many"}, (0, 0, 0, 7)),
        ({"gen_ai.usage.input_tokens": {"intValue": 2**63 - 1}}, (2**63 - 1, 0, 0, 7)),
        (
            {
                "gen_ai.usage.input_tokens": {"intValue": 2**63 - 1},
                "gen_ai.usage.cache_read.input_tokens": {"intValue": 2**63 - 1},
                "gen_ai.usage.cache_creation.input_tokens": {"intValue": 2**63 - 1},
            },
            (2**63 - 1, 2**63 - 1, 0, 7),
        ),
    ],
)
def test_kinds_of_tokens(
    acme: Cast, key: str, attributes: dict[str, Any], tokens: tuple[int, ...]
) -> None:
    send(key, answer(1, 0, 100, **attributes))

    (one,) = stored(acme)
    assert tuple(one[name] for name in TOKENS) == tokens


@pytest.mark.parametrize(
    "attributes",
    [
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": {"intValue": 3}},
        {"ai.operationId": "ai.streamText.doStream", "gen_ai.usage.input_tokens": {"intValue": 3}},
        {"llm.request.type": "chat", "gen_ai.usage.prompt_tokens": {"intValue": 3}},
    ],
)
def test_conventions(acme: Cast, key: str, attributes: dict[str, Any]) -> None:
    send(key, numbered(1, 0, "ask", **attributes))

    assert [one["input_tokens"] for one in stored(acme)] == [3]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": {"intValue": 3}},
        {"ai.operationId": "ai.generateText", "gen_ai.usage.input_tokens": {"intValue": 3}},
        {"gen_ai.operation.name": "chat"},
        {
            "gen_ai.operation.name": {"arrayValue": {"values": [{"stringValue": "chat"}]}},
            "gen_ai.usage.input_tokens": {"intValue": 3},
        },
        {"gen_ai.usage.input_tokens": {"intValue": 3}},
    ],
)
def test_sums_of_agents_and_other_spans_are_no_answers(
    acme: Cast, key: str, attributes: dict[str, Any]
) -> None:
    send(key, numbered(1, 0, "something", **attributes))

    assert stored(acme) == []


def test_hostile_names_are_cut_and_clean(acme: Cast, key: str) -> None:
    names = {"gen_ai.request.model": "m\x00" * 400, "gen_ai.provider.name": "p" * 5_000}
    send(key, answer(1, 0, 3, **names))

    (one,) = stored(acme)
    assert one["model"] == ("m\ufffd" * 400)[:256]
    assert one["provider"] == "p" * 256


def test_a_trace_without_answers_costs_no_statement(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = run()
    ran: list[str] = []
    execute = Statements._execute

    def watched(self: Statements, name: str, parameters: dict[str, Any]) -> Any:
        ran.append(name)
        return execute(self, name, parameters)

    monkeypatch.setattr(Statements, "_execute", watched)
    of_usage = {"insert_llm_usage", "llm_usage_of_traces", "tell_llm_usage"}
    send(key, spans[AGENT], spans[TOOL])
    assert ran
    assert of_usage.isdisjoint(ran)
    send(key, spans[FRAMEWORK])
    assert of_usage <= set(ran)
