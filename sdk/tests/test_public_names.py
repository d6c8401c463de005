"""The public names: those taken over from the seed systems, and where they are defined.

A name listed here is a promise. It may gain members, but not lose or move any.
"""

import importlib
import inspect
import pkgutil
from pkgutil import resolve_name
from types import ModuleType
from typing import get_args

import pytest
import tooltrail
import tooltrail.errors
import tooltrail.guard
from pydantic import BaseModel
from tooltrail.errors import TooltrailError
from tooltrail.guard import CoercionConfig, Guard, GuardOptions, Violation, ViolationCode
from tooltrail.guard.options import FailureStrategy
from tooltrail.testing import MemoryTrail
from tooltrail.tools import Tool, ToolRegistry
from tooltrail.tracing import resolve_trace

NAMES = {
    "tooltrail": "Redactor SpoolFullError Stats Trail __version__",
    "tooltrail.guard": """
        guard validate create_guard guard_tools validate_output detect_schema is_json_schema
        is_model_schema build_violation build_path format_violation_message
        format_violations_for_llm ValidationError Violation ValidationResult GuardOptions
        CoercionConfig
        """,
    "tooltrail.tools": """
        canonical_stringify compute_call_id Tool ToolRegistry Registry SpooledArtifact
        SpooledJsonArtifact SpooledMarkdownArtifact ToolCall ArtifactTool forge_tools
        """,
    "tooltrail.contracts": """
        ToolContext ToolResult ToolResultMeta ToolError ToolErrorDetail ToolErrorMeta
        ToolErrorType ToolOutput
        """,
    "tooltrail.tracing": """
        resolve_trace parse_traceparent format_traceparent outgoing_headers
        AsgiTraceMiddleware WsgiTraceMiddleware django_middleware
        """,
    "tooltrail.events": "ToolExecutionStart ToolExecutionEnd Gap EVENT",
    "tooltrail.testing": "MemoryTrail FixedClock CountedIds tooltrail_trail",
}

SIGNATURES = {
    "tooltrail.guard.guard": "schema options **",
    "tooltrail.guard.validate": "output schema options **",
    "tooltrail.guard.create_guard": "schema options **",
    "tooltrail.guard.guard_tools": "tools schemas options **",
    "tooltrail.guard.validate_output": "output schema",
    "tooltrail.guard.detect_schema": "schema",
    "tooltrail.guard.build_violation": "code path message",
    "tooltrail.guard.build_path": "parts",
    "tooltrail.guard.ValidationError": "violations tool_name",
    "tooltrail.tools.canonical_stringify": "value",
    "tooltrail.tools.compute_call_id": "tool args",
    "tooltrail.tools.Tool": """
        name description input_schema handler artifact_constructor meta ephemeral trusted
        on_collision **
        """,
    "tooltrail.tools.ToolRegistry": "tools",
    "tooltrail.tools.ToolRegistry.register": "self tool overwrite",
    "tooltrail.tools.ToolRegistry.hide": "self *names",
    "tooltrail.tools.ToolRegistry.merge": "registries on_collision",
    "tooltrail.tools.ToolRegistry.bind_context": "self ctx",
    "tooltrail.tools.Tool.executor": "self ctx",
    "tooltrail.tools.Tool.from_function": "fn name description **",
    "tooltrail.tracing.resolve_trace": "headers query body content_type",
}

GUARD_OPTIONS = """
    on_invalid fallback_value tool_name tool_options on_validation_pass on_validation_fail
    on_coercion coercion coercion_fallback field_strategies field_fallbacks json_schema_validator
    assert_formats
    """
STRATEGIES = "throw fallback error-result coerce-and-warn strip-extra"
CODES = """
    WRONG_TYPE MISSING_REQUIRED UNKNOWN_FIELD CONSTRAINT_VIOLATION ENUM_MISMATCH
    PATTERN_MISMATCH COERCED
    """

TOOL_MEMBERS = """
    name description input_schema artifact_constructor meta ephemeral trusted on_collision
    validate executor describe is_tool from_function to_openai to_anthropic to_mcp
    """
REGISTRY_MEMBERS = """
    register unregister get has all visible hidden hide unhide set_hidden clear_hidden
    prune_ephemeral bind_context merge
    """

ERRORS = {
    "E_INVALID_INITIAL_TOOL_VALUE": ("InvalidInitialToolValue", 500, True),
    "E_INVALID_TOOL_ARGS": ("InvalidToolArgs", 422, False),
    "E_TOOL_DOWNSTREAM_ERROR": ("ToolDownstreamError", 500, False),
    "E_TOOL_ALREADY_REGISTERED": ("ToolAlreadyRegistered", 409, True),
    "E_TOOL_NAME_TAKEN": ("ToolNameTaken", 409, True),
    "E_TOOL_CONTRACT_REFUSED": ("ToolContractRefused", 422, True),
    "E_INVALID_INITIAL_TOOL_CALL_VALUE": ("InvalidInitialToolCallValue", 500, True),
    "E_INVALID_INITIAL_REGISTRY_VALUE": ("InvalidInitialRegistryValue", 500, True),
    "E_NOT_A_SPOOL_READER": ("NotASpoolReader", 500, True),
    "E_LLM_EXECUTION_ALREADY_SIGNALLED": ("LlmExecutionAlreadySignalled", 500, True),
    "VALIDATION_EXCEPTION": ("ValidationException", 422, False),
}


def parameters(path: str) -> list[str]:
    """The names of a callable's parameters, those with stars marked."""
    names = []
    for each in inspect.signature(resolve_name(path)).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            names.append("**")
        else:
            names.append("*" * (each.kind is each.VAR_POSITIONAL) + each.name)
    return names


@pytest.mark.parametrize("module", NAMES)
def test_promised_names_exist_in_their_module(module: str) -> None:
    imported = resolve_name(module)

    assert [name for name in NAMES[module].split() if not hasattr(imported, name)] == []
    if hasattr(imported, "__all__"):  # without one, everything of the module's own is public
        assert set(NAMES[module].split()) <= set(imported.__all__)


@pytest.mark.parametrize("path", SIGNATURES)
def test_functions_take_the_promised_parameters_in_order(path: str) -> None:
    promised = SIGNATURES[path].split()
    taken = parameters(path)

    assert [name for name in taken if name in promised] == promised


def test_guarded_function_is_the_first_parameter_of_guard() -> None:
    assert parameters("tooltrail.guard.guard")[1:] == ["schema", "options", "**"]


def test_guard_options_strategies_and_codes_match_the_documentation() -> None:
    options = set(inspect.signature(GuardOptions).parameters)

    assert options == set(GUARD_OPTIONS.split())
    assert set(get_args(FailureStrategy)) == set(STRATEGIES.split())
    assert set(get_args(ViolationCode)) == set(CODES.split())
    assert set(inspect.signature(CoercionConfig).parameters) == {
        "string_to_number",
        "string_to_boolean",
        "string_to_json",
        "number_to_string",
        "null_to_default",
    }


def test_options_are_accepted_as_mapping_object_and_keywords() -> None:
    schema = {"type": "number"}
    ways: list[Guard] = [
        tooltrail.guard.create_guard(schema, {"onInvalid": "fallback", "fallbackValue": 0}),
        tooltrail.guard.create_guard(schema, {"on_invalid": "fallback", "fallback_value": 0}),
        tooltrail.guard.create_guard(schema, GuardOptions(on_invalid="fallback", fallback_value=0)),
        tooltrail.guard.create_guard(schema, on_invalid="fallback", fallback_value=0),
    ]

    assert [way.wrap(lambda: "no number")() for way in ways] == [0, 0, 0, 0]
    assert all(way.schema is schema and way.options == ways[0].options for way in ways)


def test_violation_dumps_camel_case_and_snake_case_names() -> None:
    violation = Violation(path="$", code="COERCED", received_value="1", coerced_value=1)

    assert {"receivedValue", "coercedValue", "llmMessage"} <= violation.model_dump(
        by_alias=True
    ).keys()
    assert {"received_value", "coerced_value", "llm_message"} <= violation.model_dump().keys()


@pytest.mark.parametrize("code", ERRORS)
def test_each_error_code_has_one_error_class(code: str) -> None:
    name, status, fatal = ERRORS[code]
    error: type[TooltrailError] = getattr(tooltrail.errors, name)

    assert (error.code, error.status, error.fatal) == (code, status, fatal)
    assert issubclass(error, TooltrailError)


def test_every_error_class_is_listed_in_this_test() -> None:
    classes = vars(tooltrail.errors).values()
    codes = {each.code for each in classes if isinstance(each, type) and hasattr(each, "code")}

    assert codes == set(ERRORS)


def test_tools_registries_and_traces_have_the_documented_members() -> None:
    tool = Tool(name="t", description="d", input_schema={"type": "object"}, handler=print)

    assert [name for name in TOOL_MEMBERS.split() if not hasattr(tool, name)] == []
    assert [name for name in REGISTRY_MEMBERS.split() if not hasattr(ToolRegistry, name)] == []
    trace = resolve_trace({})
    assert trace.trace_id
    assert trace.span_id


def test_executor_context_can_be_created_from_a_trail() -> None:
    context = MemoryTrail().context("turn-1")

    assert context.id == "turn-1"
    assert callable(context.emit_tool_execution_start)
    assert callable(context.emit_tool_execution_end)


def modules() -> list[ModuleType]:
    walked = pkgutil.walk_packages(tooltrail.__path__, "tooltrail.")
    return [
        importlib.import_module(each.name)
        for each in walked
        if not each.name.endswith("__main__")
        and not each.name.startswith("tooltrail.integrations.")  # each needs its framework
    ]


def test_every_public_name_has_a_docstring() -> None:
    """Modules, and the classes, functions and methods that users see by `help()`."""
    silent = [module.__name__ for module in modules() if not module.__doc__]
    for path, names in NAMES.items():
        for name in names.split():
            value = getattr(resolve_name(path), name)
            if not inspect.isclass(value) and not inspect.isfunction(value):
                continue
            if not inspect.getdoc(value):
                silent.append(f"{path}.{name}")
            if inspect.isclass(value) and not issubclass(value, BaseModel):
                silent += [
                    f"{path}.{name}.{member}"
                    for member, each in vars(value).items()
                    if inspect.isfunction(each)
                    and not member.startswith("_")
                    and not inspect.getdoc(getattr(value, member))
                ]

    assert silent == []
