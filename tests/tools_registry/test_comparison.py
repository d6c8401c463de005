"""Definitions compared with the published contracts over the API: nothing is stored."""

from typing import Any

from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast
from tests.support.registered_tools import DEFINITION, register_tool
from tests.support.registry_exchange import exported_registry
from tools_registry.exchange import comparison_api
from tools_registry.models import Tool, ToolDraft, ToolImport, ToolVersion

WIDE = {"type": "object", "properties": {"city": {"type": "string"}}}


def compared(cast: Cast, document: Any) -> list[dict[str, Any]]:
    """The tools of the answer."""
    tools: list[dict[str, Any]] = program(cast.tenant, Scope.READ).do("registry/compare", document)[
        "tools"
    ]
    return tools


def test_each_definition_is_compared_with_its_current_version(acme: Cast) -> None:
    tool = register_tool(acme)
    same = {"name": "get_weather", "description": "Tells the weather.", "inputSchema": WIDE}
    (unchanged,) = compared(acme, [same])
    assert (unchanged["status"], unchanged["version"]) == ("unchanged", 1)
    assert (unchanged["callers"], unchanged["changes"]) == (None, [])

    narrow, new, wrong = compared(
        acme,
        {
            "tools": [
                DEFINITION,
                {"name": "new", "inputSchema": {"type": "object"}},
                {"name": "wrong", "inputSchema": {"type": "objekt"}},
            ]
        },
    )
    assert (narrow["status"], narrow["tool_id"]) == ("changed", str(tool.pk))
    assert (narrow["callers"], narrow["consumers"]) == ("breaking", "compatible")
    breaking = [one for one in narrow["changes"] if one["verdict"] == "breaking"]
    assert [(one["path"], one["keyword"]) for one in breaking] == [("$.city", "maxLength")]
    assert narrow["input_schema"] == DEFINITION["inputSchema"]
    assert narrow["output_schema"] == {"type": "object", "required": ["celsius"]}  # as it was
    assert (new["status"], new["version"], new["path"]) == ("new", None, "tools[1]")
    assert (wrong["status"], wrong["input_schema"]) == ("refused", None)
    assert "tools[2].inputSchema: is not a usable JSON Schema" in wrong["problems"][0]


def test_registry_export_is_compared_by_its_current_versions(acme: Cast) -> None:
    register_tool(acme)
    document = exported_registry(acme.tenant)
    assert [one["status"] for one in compared(acme, document)] == ["unchanged"]
    version = document["tools"][0]["versions"][0]
    del version["digest"]
    version["output_schema"] = None
    (looser,) = compared(acme, document)
    assert (looser["callers"], looser["consumers"]) == ("compatible", "breaking")
    assert looser["output_schema"] is None


def test_comparison_stores_nothing(acme: Cast) -> None:
    register_tool(acme)

    def stored() -> list[int]:
        with tenant_scope(acme.tenant.id):
            return [one.objects.count() for one in (Tool, ToolVersion, ToolDraft, ToolImport)]

    before = stored()
    asking = program(acme.tenant, Scope.READ)
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.count()
    asking.do("registry/compare", [DEFINITION, {"name": "new", "inputSchema": {"type": "object"}}])
    assert stored() == before
    with tenant_scope(acme.tenant.id):
        assert Action.objects.count() == actions


def test_unusable_documents_are_refused(acme: Cast) -> None:
    api = program(acme.tenant, Scope.READ)
    assert api.refused("registry/compare") == (400, "malformed")
    assert api.refused("registry/compare", {"no": "tools"}) == (400, "malformed")
    many = [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(51)]
    assert api.refused("registry/compare", many) == (413, "too_many")
    long = [{"name": "t", "description": "x" * comparison_api.BODY_MAX_BYTES}]
    assert api.refused("registry/compare", long) == (413, "too_large")


def test_tools_of_other_tenants_are_new(acme: Cast, globex: Cast) -> None:
    register_tool(acme)
    (of_globex,) = compared(globex, [DEFINITION])
    assert (of_globex["status"], of_globex["tool_id"]) == ("new", None)
