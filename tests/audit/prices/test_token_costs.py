"""Costs of random answers by the package's prices and by lists equal a count one by one."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage, calc_price

from audit.prices.lists import save_list
from audit.queries import model_prices
from audit.queries.price_lists import ModelPrice, prices_held
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import (
    TokenCost,
    token_costs_by_name,
    token_costs_of,
    token_costs_of_agents,
    token_costs_over_time,
)
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, post, request, span

MODELS = (
    ("openai", "gpt-4o-2024-08-06"),
    ("openai", "gpt-5.4"),
    ("anthropic", "claude-sonnet-4-5-20250929"),
    ("gcp.gemini", "gemini-2.5-pro"),
    ("", "gpt-4o-mini"),
    ("somebody", "gpt-4o"),  # a provider that the package does not know
    ("openai", "our-own"),
)
MIDNIGHT = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
SOMETIMES = Decimal("2.5")


@dataclass(frozen=True)
class Answer:
    at: datetime
    provider: str
    model: str
    agent: str
    run_id: str
    trace_id: str
    input: int
    cached: int
    written: int
    output: int


def some_answer(rng: random.Random) -> Answer:
    provider, model = rng.choice(MODELS)
    took = rng.choice((0, 7, 128_000, 128_001, 200_000, 200_001, 272_001, rng.randrange(10**6)))
    cached = rng.choice((0, rng.randint(0, took)))
    return Answer(
        min(
            MIDNIGHT - timedelta(days=rng.randrange(4)) + timedelta(hours=rng.uniform(0, 24)),
            datetime.now(UTC) - timedelta(minutes=2),
        ),
        provider,
        model,
        rng.choice(("", "planner", "writer")),
        rng.choice(("", "c-1", "c-2")),
        f"{rng.randrange(1, 6):032x}",
        took,
        cached,
        rng.choice((0, rng.randint(0, took - cached))),
        rng.randrange(5_000),
    )


def sent(answer: Answer) -> dict[str, Any]:
    start = int(answer.at.timestamp() * 1_000_000) * 1_000
    counts = {
        "gen_ai.usage.input_tokens": answer.input,
        "gen_ai.usage.cache_read.input_tokens": answer.cached,
        "gen_ai.usage.cache_creation.input_tokens": answer.written,
        "gen_ai.usage.output_tokens": answer.output,
    }
    names = {
        "gen_ai.provider.name": answer.provider,
        "gen_ai.request.model": answer.model,
        "gen_ai.agent.name": answer.agent,
        "gen_ai.conversation.id": answer.run_id,
    }
    return span(
        "chat",
        traceId=answer.trace_id,
        startTimeUnixNano=str(start),
        endTimeUnixNano=str(start + 1_000_000),
        attributes={
            "gen_ai.operation.name": "chat",
            **{name: value for name, value in names.items() if value},
            **{name: {"intValue": count} for name, count in counts.items()},
        },
    )


class History:
    """A tenant's answers and lists, and what they cost by the package's own calculation."""

    def __init__(self, cast: Cast, rng: random.Random, currency: str) -> None:
        self.cast = cast
        self.currency = currency
        self.lists: dict[date, dict[str, ModelPrice]] = {}
        self.answers = [some_answer(rng) for _ in range(60)]
        key = make_ingest_key(cast.tenant)
        for n in range(0, 60, 20):
            body = request(*map(sent, self.answers[n : n + 20]))
            assert post(key, body, JSON).status_code == 200
        if not currency:
            return
        for back in rng.sample(range(5), 2):
            day = (MIDNIGHT - timedelta(days=back)).date()
            models = [
                ModelPrice(model, SOMETIMES, Decimal(7), rng.choice((None, Decimal("0.1"))))
                for model in rng.sample(("our-own", "gpt-4o", "gpt-5.4"), 2)
            ]
            with tenant_scope(cast.tenant.id):
                now = datetime.now(UTC)
                save_list(cast.tenant, cast.admin, day, currency, [], now, models=models)
            self.lists[day] = {one.model: one for one in models}

    def cost(self, chosen: Callable[[Answer], bool]) -> tuple[int, int, Decimal, int]:
        of = [answer for answer in self.answers if chosen(answer)]
        amounts = [amount for one in of if (amount := self._amount(one)) is not None]
        return len(of), len(amounts), sum(amounts, Decimal(0)), sum(one.input for one in of)

    def _amount(self, answer: Answer) -> Decimal | None:
        begun = [day for day in self.lists if day <= answer.at.date()]
        named = self.lists[max(begun)].get(answer.model) if begun else None
        if named is not None:
            cached = named.input if named.cached is None else named.cached
            took = (answer.input - answer.cached) * named.input + answer.cached * cached
            return (took + answer.output * named.output) / 10**6
        if self.currency not in {"", "USD"}:
            return None
        usage = Usage(
            input_tokens=answer.input,
            cache_read_tokens=answer.cached,
            cache_write_tokens=answer.written,
            output_tokens=answer.output,
        )
        try:
            priced = calc_price(
                usage,
                answer.model,
                provider_id=answer.provider or None,
                genai_request_timestamp=answer.at,
            )
        except LookupError:
            return None
        return priced.total_price


def sums(cost: TokenCost) -> tuple[int, int, Decimal, int]:
    return cost.answers, cost.priced, cost.amount, cost.input


@pytest.mark.slow
@pytest.mark.generated(3)
@pytest.mark.parametrize("currency", ["", "USD", "EUR"])
@pytest.mark.parametrize("seed", range(4))
def test_costs_of_tokens_equal_a_recount(acme: Cast, seed: int, currency: str) -> None:
    rng = random.Random(seed)
    history = History(acme, rng, currency)
    for _ in range(4):
        start = MIDNIGHT - timedelta(days=3) + timedelta(hours=rng.uniform(0, 60))
        check_a_range(history, TimeRange(start, start + timedelta(hours=rng.uniform(1, 40)), UTC))
    with tenant_scope(acme.tenant.id):
        for trace_id in {one.trace_id for one in history.answers}:
            costs = token_costs_of(prices_held(), trace_id=trace_id)
            assert costs is not None
            expected = history.cost(lambda one: one.trace_id == trace_id)  # noqa: B023
            assert sums(costs.total) == expected
        costs = token_costs_of(prices_held(), run_id="c-1")
        assert costs is not None
        assert sums(costs.total) == history.cost(lambda one: one.run_id == "c-1")
        assert token_costs_of(prices_held(), trace_id="nothing") is None


def check_a_range(history: History, of: TimeRange) -> None:
    def within(one: Answer) -> bool:
        return of.start <= one.at < of.end

    with tenant_scope(history.cast.tenant.id):
        found, of_agents = token_costs_by_name(of), token_costs_of_agents(of)
        of_planner = token_costs_of_agents(of, "planner")
        assert token_costs_over_time(of) == (found[0] if found else None)
    before = history.cost(lambda one: of.previous.start <= one.at < of.start)
    if found is None:
        assert (history.cost(within)[0], before[0]) == (0, 0)
        return
    costs, named = found
    assert costs.currency == (history.currency or "USD")
    assert costs.package == (None if history.currency == "EUR" else model_prices.package_version())
    assert sums(costs.total) == sums(named.total) == history.cost(within)
    assert sums(costs.previous) == before
    for part, (start, end) in zip(costs.parts, of.parts, strict=True):
        assert sums(part) == history.cost(lambda one: start <= one.at < end)  # noqa: B023
    for each in costs.models:
        name = each.provider, each.model
        expected = history.cost(lambda one: within(one) and (one.provider, one.model) == name)  # noqa: B023
        assert sums(each.cost) == expected
    for key, list_of in (
        ("agent", named.agents),
        ("run_id", named.conversations),
        ("trace_id", named.traces),
    ):
        assert {one.name for one in list_of} == {
            getattr(one, key) for one in history.answers if within(one)
        }
        for one in list_of:
            assert sums(one.cost) == history.cost(
                lambda answer: within(answer) and getattr(answer, key) == one.name  # noqa: B023
            )
    if of_agents is None or of_planner is None:
        assert not costs.total.answers
        return
    assert of_agents.agents == {one.name: one.cost for one in named.agents}
    assert of_agents.total == costs.total
    planner = history.cost(lambda one: within(one) and one.agent == "planner")
    assert sums(of_planner.total) == planner


def test_without_the_package_nothing_has_a_price(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(acme, random.Random(1), "")
    monkeypatch.setattr("audit.queries.token_costs.package_version", lambda: None)
    with tenant_scope(acme.tenant.id):
        found = token_costs_over_time(
            TimeRange(MIDNIGHT - timedelta(days=4), datetime.now(UTC), UTC)
        )
    assert found is not None
    assert (found.currency, found.package) == ("", None)
    assert (found.total.answers, found.total.priced) == (len(history.answers), 0)


def test_prices_that_are_not_only_by_tokens_are_none() -> None:
    day = date(2026, 1, 1)
    assert model_prices.package_rate("deepseek", "deepseek-chat", date(2025, 3, 1), 0) is None
    assert model_prices.package_rate("perplexity", "sonar", day, 0) is None
    assert model_prices.package_rate("openai", "", day, 0) is None
    rate = model_prices.package_rate("openai", "gpt-4o", day, 0)
    assert rate is not None
    assert rate.written == rate.input
