"""Registration of tools: each once, by digest first, and failures do not affect calls."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tooltrail import Trail
from tooltrail.errors import ToolAlreadyRegistered, ToolContractRefused, ToolNameTaken
from tooltrail.guard import guard
from tooltrail.testing import MemoryTrail
from tooltrail.tools import OnCollision, Tool, ToolRegistry

from sdk.tests.support.ingest_server import Reply, Request, Server

MakeTrail = Callable[..., Trail]
NUMBER = {"type": "number"}


def make_tool(name: str, *, ephemeral: bool = False, on_collision: OnCollision = "keep") -> Tool:
    def handler(args: Any, ctx: Any, meta: Any) -> Any:
        return 1

    return Tool(
        name=name,
        description=f"Do {name}",
        input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
        handler=guard(handler, NUMBER),
        meta={"team": "hats"},
        trusted=True,
        ephemeral=ephemeral,
        on_collision=on_collision,
    )


def execute(trail: Trail, tool: Tool) -> Any:
    return asyncio.run(tool.executor(trail.context("turn-1"))({}))


class Registry:
    """Knows nothing at first, and refuses the tools of some names."""

    def __init__(self, *taken: str, code: str = "name_taken") -> None:
        self.mentioned: list[str] = []
        self.announced: list[dict[str, Any]] = []
        self._taken = taken
        self._code = code

    def __call__(self, request: Request) -> Reply | None:
        if request.path != "/api/v1/tools":
            return None
        tools = json.loads(request.body)["tools"]
        bodies = [tool for tool in tools if "name" in tool]
        digests = [tool["digest"] for tool in tools if "name" not in tool]
        self.announced += bodies
        self.mentioned += digests
        known = [body["digest"] for body in self.announced]
        refused = [
            {"name": body["name"], "code": self._code, "message": "another contract"}
            for body in bodies
            if body["name"] in self._taken
        ]
        unknown = [digest for digest in digests if digest not in known]
        return 200, {"unknown": unknown, "refused": refused}, {}


def test_executed_tool_is_announced_with_its_guard_schema(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = registry = Registry()
    trail, tool = make_trail(), make_tool("measure")

    for _ in range(3):
        execute(trail, tool)
    assert trail.flush(20)
    server.wait(lambda: bool(registry.announced))

    [body] = registry.announced
    assert registry.mentioned == [body["digest"]]
    assert {event["tool_version"] for event in server.events} == {body["digest"]}
    assert (body["name"], body["description"]) == ("measure", "Do measure")
    assert body["input_schema"] == tool.describe()["inputSchema"]
    assert body["output_schema"] == NUMBER
    assert (body["trusted"], body["ephemeral"], body["on_collision"]) == (True, False, "keep")
    assert body["meta"] == {"team": "hats"}


def test_tools_can_be_announced_before_any_call(make_trail: MakeTrail, server: Server) -> None:
    server.plan = registry = Registry()
    trail = make_trail()
    tools = ToolRegistry([make_tool("measure"), make_tool("weigh", ephemeral=True)])

    trail.announce(tools.all())
    trail.announce(tools.all())
    server.wait(lambda: bool(registry.announced))

    assert [body["name"] for body in registry.announced] == ["measure", "weigh"]


def test_tool_rejected_by_the_registry_is_logged(
    make_trail: MakeTrail, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = registry = Registry("weigh")
    trail = make_trail()

    trail.announce([make_tool("measure"), make_tool("weigh", on_collision="throw")])
    server.wait(lambda: bool(registry.announced))
    assert trail.close(20)

    assert "the registry rejected weigh: another contract" in caplog.text
    assert "measure" not in caplog.text


def refusing(request: Request) -> Reply | None:
    """The answer of a registry to which all names are taken."""
    if request.path != "/api/v1/tools":
        return None
    tools = json.loads(request.body)["tools"]
    if "name" not in tools[0]:
        return 200, {"unknown": [tool["digest"] for tool in tools]}, {}
    diff = {"callers": "breaking", "consumers": "compatible", "changes": []}
    refused = [
        {"name": tool["name"], "code": "name_taken", "message": "another contract", "diff": diff}
        for tool in tools
    ]
    return 409, {"code": "name_taken", "refused": refused}, {}


def test_taken_tool_name_is_logged_once_and_the_tool_runs(
    make_trail: MakeTrail, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = refusing
    trail = make_trail()
    double = trail.tool(lambda n: 2 * n)
    assert [double(1), double(2)] == [2, 4]
    trail.announce([make_tool("weigh", on_collision="throw")])
    assert trail.flush(20)
    assert trail.close(20)
    assert caplog.text.count("another contract") == 2
    assert "takes no tools from this key" not in caplog.text


def test_strict_mode_raises_with_the_diff_before_the_tool_runs(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = refusing
    trail, ran = make_trail(register="strict"), []

    @trail.tool(name="weigh")
    def weigh(n: int) -> None:
        ran.append(n)

    for _ in range(2):
        with pytest.raises(ToolNameTaken, match="another contract") as raised:
            weigh(1)
    assert raised.value.diff["callers"] == "breaking"
    assert (raised.value.status, ran) == (409, [])
    assert isinstance(raised.value, ToolAlreadyRegistered)
    assert len(server.requests) == 2, "asked once: by digest, then whole"
    tool = make_tool("measure", on_collision="throw")
    with pytest.raises(ToolNameTaken):
        trail.announce([tool])
    with pytest.raises(ToolNameTaken):
        execute(trail, tool)


def test_malformed_contract_is_logged_once_or_raises_in_strict_mode(
    make_trail: MakeTrail, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = Registry("weigh", code="malformed")
    lenient = make_trail()
    weigh = lenient.tool(name="weigh")(lambda n: n)
    assert [weigh(1), weigh(2)] == [1, 2]
    assert lenient.close(20)
    assert caplog.text.count("rejected weigh: another contract") == 1
    server.plan = Registry("weigh", code="malformed")
    strict = make_trail(register="strict")
    with pytest.raises(ToolContractRefused, match="another contract"):
        strict.tool(name="weigh")(lambda n: n)(1)


def test_strict_mode_runs_accepted_tools_and_announces_each_once(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = registry = Registry()
    trail = make_trail(register="strict")
    double = trail.tool(name="double")(lambda n: 2 * n)
    assert [double(1), double(2)] == [2, 4]
    assert trail.close(20)
    assert [body["name"] for body in registry.announced] == ["double"]
    assert len(registry.mentioned) == 1
    assert server.events[0]["tool_version"] == registry.mentioned[0]


def test_strict_mode_runs_tools_while_the_registry_is_unavailable(
    make_trail: MakeTrail, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.plan = lambda request: (503, {}, {}) if request.path == "/api/v1/tools" else None
    trail = make_trail(register="strict")
    double = trail.tool(lambda n: 2 * n)
    assert [double(1), double(2)] == [2, 4]
    assert caplog.text.count("registry is unreachable") == 1


def test_ephemeral_tool_has_no_version(trail: MemoryTrail) -> None:
    execute(trail, make_tool("measure", ephemeral=True))
    execute(trail, make_tool("measure"))

    versions = [event.get("tool_version") for event in trail.events]
    assert versions[:2] == [None, None]
    assert all(versions[2:])


def test_exponential_schema_is_left_out_of_the_announcement(
    make_trail: MakeTrail, server: Server
) -> None:
    server.plan = registry = Registry()
    trail = make_trail()
    schema: dict[str, Any] = {}
    for _ in range(40):
        schema = {"properties": {"a": schema, "b": schema}}  # 2^40 when written out

    @trail.tool(input_schema=schema)
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    assert trail.close(20)
    assert server.events[0]["tool_version"].startswith("sha256:")
    (announced,) = registry.announced
    assert announced["name"] == "double"
    assert list(announced["input_schema"]["properties"]) == ["n"], "its arguments instead"


def test_tool_without_usable_description_still_runs(make_trail: MakeTrail) -> None:
    trail = make_trail()

    @trail.tool(input_schema={"type": "object", "maximum": 10**400})
    def double(n: int) -> int:
        return 2 * n

    @trail.tool
    def triple(n: "Nowhere") -> Any:  # type: ignore[name-defined]  # noqa: F821  # unknown on purpose
        return 3 * n

    assert (double(2), triple(2)) == (4, 6)


def test_announcing_without_a_server_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLTRAIL_URL", raising=False)
    trail, tool = Trail(), make_tool("measure")

    trail.announce([tool])

    assert execute(trail, tool) == 1
