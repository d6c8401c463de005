"""What tools and models cost in a report's range: its figures, and their section."""

from decimal import Decimal
from typing import Any

from audit.queries.costs import Cost, costs_over_time
from audit.queries.price_lists import plain
from audit.queries.time_range import TimeRange
from audit.queries.token_costs import TokenCost, token_costs_over_time
from audit.reports.layout import Cell, Column, Section, Table, more, numbers, tool_cell, with_rows
from audit.show.figures import count, money

_LISTED = 50


def cost_figures(of: TimeRange) -> dict[str, Any]:
    """What calls and answers of models cost, as the page of costs shows it.

    Each is null if the tenant has no price list, or no model answered. Amounts are decimal numbers
    as texts.
    """
    tools, answers = costs_over_time(of), token_costs_over_time(of)
    models = answers if answers is not None and answers.total.answers else None
    return {
        "tools": tools
        and {
            "currency": tools.currency,
            "calls": tools.total.calls,
            **_cost(tools.total),
            "tool_count": len(tools.tools),
            "tools": [
                {"tool_name": one.tool, "calls": one.cost.calls, **_cost(one.cost)}
                for one in tools.tools[:_LISTED]
            ],
        },
        "models": models
        and {
            "currency": models.currency or None,
            "prices_version": models.package,
            **_tokens(models.total),
            "model_count": len(models.models),
            "models": [
                {"provider": one.provider, "model": one.model, **_tokens(one.cost)}
                for one in models.models[:_LISTED]
            ],
        },
    }


def _cost(cost: Cost | TokenCost) -> dict[str, Any]:
    return {"without_price": cost.unpriced, "amount": plain(cost.amount)}


def _tokens(cost: TokenCost) -> dict[str, Any]:
    return {
        "answers": cost.answers,
        **_cost(cost),
        "input_tokens": cost.input,
        "cached_tokens": cost.cached,
        "written_tokens": cost.written,
        "output_tokens": cost.output,
    }


def costs(all_figures: dict[str, Any]) -> Section:
    """What tools and models cost."""
    tools, models = all_figures["costs"]["tools"], all_figures["costs"]["models"]
    pairs: list[tuple[str, Cell]] = []
    tables: list[Table] = []
    if tools:
        pairs += [
            ("Tools", _amount(tools, tools["calls"], tools["currency"])),
            ("Calls without a price", Cell(count(tools["without_price"]))),
        ]
        rows = [
            [
                tool_cell(one["tool_name"], one["tool_name"]),
                Cell(count(one["calls"])),
                Cell(count(one["without_price"])),
                _amount(one, one["calls"], tools["currency"]),
            ]
            for one in tools["tools"]
        ]
        heads = [Column("Tool"), *numbers("Calls", "Without a price", "Cost")]
        rest = more(tools["tool_count"], tools["tools"], "tool")
        tables.append(Table("By tool, most expensive first", heads, rows, rest))
    if models:
        pairs += [
            ("Models", _amount(models, models["answers"], models["currency"])),
            ("Answers without a price", Cell(count(models["without_price"]))),
        ]
        rows = [
            [
                Cell(one["model"] or "none reported"),
                Cell(count(one["answers"])),
                Cell(count(one["input_tokens"])),
                Cell(count(one["output_tokens"])),
                Cell(count(one["without_price"])),
                _amount(one, one["answers"], models["currency"]),
            ]
            for one in models["models"]
        ]
        heads = [
            Column("Model"),
            *numbers("Answers", "Tokens in", "Tokens out", "Without a price", "Cost"),
        ]
        rest = more(models["model_count"], models["models"], "model")
        tables.append(Table("By model, most expensive first", heads, rows, rest))
    note = "Amounts leave out what has no price. The models' tokens are in no tool's cost."
    if models and models["prices_version"]:
        note += f" Models that no list names: genai-prices {models['prices_version']}."
    return Section("costs", "Costs", pairs, with_rows(*tables), note)


def _amount(figures: dict[str, Any], whole: int, currency: str | None) -> Cell:
    if figures["without_price"] == whole:
        return Cell("no price", "dim")
    return Cell(money(Decimal(figures["amount"]), currency or ""))
