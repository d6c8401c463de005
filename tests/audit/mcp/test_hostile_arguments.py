"""Whatever the arguments of a tool are, the answer is one of the protocol and never a 500."""

from typing import Any

import pytest

from audit.mcp.tools import TOOLS
from tests.support.factories import Cast
from tests.support.mcp_agent import Agent

HOSTILE: list[Any] = [
    *("\x00", "\ud800", "x" * 5_000, "tool:(((", "é'\";--", "2026-99-99"),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "01a21a20-224e-7525-b482-15c7aaab4ef6"),
    *(-1, 10**30, 1.5, True, None, [], {}, {"a": [[[]]]}),
]


@pytest.mark.slow
@pytest.mark.generated(3)
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_argument_is_an_error_of_the_server(acme: Cast, name: str) -> None:
    agent = Agent(acme.tenant)
    schema = TOOLS[name].described["inputSchema"]
    valid = dict.fromkeys(schema.get("required", []), "x")
    for member in schema["properties"]:
        for value in HOSTILE:
            arguments = {**valid, member: value}
            answer = agent.send("tools/call", {"name": name, "arguments": arguments})
            assert answer.status_code in (200, 400), (member, value)
            assert {"result", "error"} & answer.json().keys()
