"""Valid contracts for tests; a test overrides the members it is about."""

from typing import Any

from tooltrail.tools.digest import tool_digest


def make_contract(**overrides: Any) -> dict[str, Any]:
    """A tool as an executor registers it, its digest worked out."""
    contract: dict[str, Any] = {
        "name": "get_weather",
        "description": "Tells the weather.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "output_schema": {"type": "object", "required": ["celsius"]},
        "trusted": False,
        "ephemeral": False,
        "on_collision": "throw",
        **overrides,
    }
    meta = contract.pop("meta", {})
    contract["digest"] = contract.get("digest") or tool_digest(**contract)
    return {**contract, "meta": meta}
