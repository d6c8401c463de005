"""Functions as tools, and the definitions of tools for providers."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import Field
from tooltrail.errors import InvalidInitialToolValue
from tooltrail.tools import Tool

from sdk.tests.support.tools import CASE, Context, Filter, make_tool, refused, run


def google(city: str, days: int = 3) -> str:
    """Forecast the weather.

    Covers Europe only.

    Args:
        city (str): The city, without
            its country.
        days: How many days: at most 7.

    Returns:
        A sentence.
    """
    return f"{city} {days}"


def numpy(city: str, days: int = 3) -> str:
    """Forecast the weather.

    Covers Europe only.

    Parameters
    ----------
    city : str
        The city, without
        its country.
    days : int, optional
        How many days: at most 7.

    Returns
    -------
    str
        A sentence.
    """
    return f"{city} {days}"


def sphinx(city: str, days: int = 3) -> str:
    """Forecast the weather.

    Covers Europe only.

    :param city: The city, without
        its country.
    :param int days: How many days: at most 7.
    :returns: A sentence.
    """
    return f"{city} {days}"


@pytest.mark.parametrize("fn", [google, numpy, sphinx])
def test_function_signature_and_docstring_describe_the_tool(fn: Callable[..., str]) -> None:
    tool = Tool.from_function(fn, name="forecast")
    described = tool.describe()
    assert described["description"] == "Forecast the weather.\n\nCovers Europe only."
    properties = described["inputSchema"]["properties"]
    assert properties["city"]["description"] == "The city, without its country."
    assert properties["city"]["type"] == "string"
    assert properties["days"]["description"] == "How many days: at most 7."
    assert properties["days"]["default"] == 3
    assert described["inputSchema"]["required"] == ["city"]
    assert described["inputSchema"]["additionalProperties"] is False
    ctx = Context()
    assert run(tool, {"city": "Rom"}, ctx) == "Rom 3"
    assert ctx.starts[0].args == {"city": "Rom", "days": 3}


def test_unusual_signatures_are_supported() -> None:
    async def odd(  # type: ignore[no-untyped-def]  # what mypy would refuse
        positional: int,
        /,
        json: Annotated[str, Field(description="Text.", max_length=3)],
        _private: list[int] = [],  # noqa: B006  # what users write
        *,
        model_config: Filter | None = None,
        anything=None,
    ) -> tuple[Any, ...]:
        """Takes odd names."""
        return positional, json, _private, model_config, anything

    tool = Tool.from_function(odd, ephemeral=True)
    assert (tool.name, tool.ephemeral) == ("odd", True)
    properties = tool.describe()["inputSchema"]["properties"]
    assert properties["json"]["description"] == "Text."
    args = {"positional": 1, "json": "abc", "model_config": {"case": CASE}, "anything": [1]}
    assert run(tool, args) == (1, "abc", [], Filter(case=UUID(CASE)), [1])
    assert refused(tool, {"positional": 1, "json": "abcd"}) == [(("json",), "string_too_long")]


class Adder:
    def add(self, a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    def __call__(self, a: int) -> int:
        """Adds one."""
        return a + 1


@pytest.mark.parametrize(
    ("fn", "name", "members", "args", "result"),
    [
        (partial(Adder().add, 1), "add", {"b"}, {"b": 5}, 6),
        (partial(Adder().add, b=7), "add", {"a", "b"}, {"a": 1}, 8),
        (partial(partial(Adder().add, b=7), 1), "add", {"b"}, {}, 8),
        (Adder(), "Adder", {"a"}, {"a": 1}, 2),
        (partial(Adder(), 1), "Adder", set(), {}, 2),
    ],
)
def test_partials_and_callable_objects_use_the_inner_description(
    fn: Callable[..., int], name: str, members: set[str], args: dict[str, int], result: int
) -> None:
    tool = Tool.from_function(fn)
    assert (tool.name, tool.description[:4]) == (name, "Adds")
    assert tool.describe()["inputSchema"]["properties"].keys() == members
    assert run(tool, args) == result


def undescribed(x: int) -> int:
    return x


def starred(*rest: int) -> int:
    """Sums."""
    return sum(rest)


def unresolved(x: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821  # unknown on purpose
    """Has a hint nobody knows."""


@pytest.mark.parametrize("fn", [undescribed, starred, unresolved])
def test_functions_without_usable_description_are_rejected(fn: Callable[..., Any]) -> None:
    with pytest.raises(InvalidInitialToolValue):
        Tool.from_function(fn)


# --- definitions


def test_tool_definitions_match_each_provider_format() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    tool = make_tool(input_schema=schema)
    common = {"name": "search", "description": "Searches."}
    assert tool.describe() == tool.to_mcp() == {**common, "inputSchema": schema}
    assert tool.to_anthropic() == {**common, "input_schema": schema}
    assert tool.to_openai() == {"type": "function", "function": {**common, "parameters": schema}}
    tool.describe()["inputSchema"]["properties"].clear()
    assert tool.describe()["inputSchema"] == schema
