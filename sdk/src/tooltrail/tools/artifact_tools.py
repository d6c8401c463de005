"""Tools with which a model reads what earlier tools of its turn returned.

Owns the seven queries that every artifact answers, and how an answer is written as text. The
queries of JSON and Markdown artifacts are methods, which the host may offer as tools.
"""

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from tooltrail.errors import InvalidInitialToolValue
from tooltrail.redact import opaque
from tooltrail.tools.artifacts import SpooledArtifact
from tooltrail.tools.members import MemberProblems
from tooltrail.tools.registry import ToolRegistry
from tooltrail.tools.tool import Tool
from tooltrail.tools.toolcall import ToolCall


class ArtifactTool(Tool):
    """A tool that answers a question about an artifact. Its result does not become an artifact.

    Raises InvalidInitialToolValue as `Tool` does, and if `artifact_constructor` is given.
    Source: the ADK's `ArtifactTool`.
    """

    __slots__ = ()

    def __init__(self, **members: Any) -> None:
        if members.get("artifact_constructor") is not None:
            problems = MemberProblems(InvalidInitialToolValue)
            problems.add("artifact_constructor", "is not allowed for a tool that reads artifacts")
            problems.raise_any()
        super().__init__(**members)


@dataclass(frozen=True, slots=True)
class _Query:
    """One query: its name, its description for the model, its arguments and how to answer it."""

    name: str
    description: str
    answer: Callable[[SpooledArtifact, dict[str, Any]], Awaitable[Any]]
    properties: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()


def _grep(artifact: SpooledArtifact, args: dict[str, Any]) -> Awaitable[list[str]]:
    # The other flags have no effect, as a line contains no newlines.
    return artifact.grep(args["pattern"], ignore_case="i" in args.get("flags", ""))


_LINES = {"type": "integer", "minimum": 1, "default": 10, "description": "Number of lines"}
_LINE = {"type": "integer", "minimum": 0}
_QUERIES = (
    _Query(
        "artifact_head",
        "Return the first n lines of the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.head(args["n"]),
        {"n": _LINES},
    ),
    _Query(
        "artifact_tail",
        "Return the last n lines of the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.tail(args["n"]),
        {"n": _LINES},
    ),
    _Query(
        "artifact_grep",
        "Return the matching lines of the result of an earlier tool call in this turn.",
        _grep,
        {
            "pattern": {
                "type": "string",
                "description": "A JavaScript regular expression without look-around",
            },
            "flags": {
                "type": "string",
                "pattern": "^[imsu]*$",
                "description": "i: ignore case",
            },
        },
        ("pattern",),
    ),
    _Query(
        "artifact_cat",
        "Return all lines, or a range, of the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.cat(args.get("start", 0), args.get("end")),
        {
            "start": {**_LINE, "description": "First line, counted from 0"},
            "end": {**_LINE, "description": "The line after the last one"},
        },
    ),
    _Query(
        "artifact_byte_length",
        "Return the number of bytes in the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.byte_length(),
    ),
    _Query(
        "artifact_line_count",
        "Return the number of lines in the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.line_count(),
    ),
    _Query(
        "artifact_estimate_tokens",
        "Estimate the number of tokens in the result of an earlier tool call in this turn.",
        lambda artifact, args: artifact.estimate_tokens(args.get("encoding")),
        {"encoding": {"type": "string", "description": "Name of the tokenizer, if known"}},
    ),
)


def forge_tools(
    calls: Iterable[ToolCall], kind: type[SpooledArtifact] = SpooledArtifact
) -> ToolRegistry:
    """Make the seven `artifact_…` tools for the artifacts among these calls' results.

    Each tool takes the `callId` of one call whose result is a single artifact of this `kind`.
    Calls of artifact tools themselves are excluded. The tools are ephemeral, and in a `merge`
    they replace tools with the same names. Without any artifact the registry is empty. Source:
    the ADK's `SpooledArtifact.forgeTools`.
    """
    artifacts = {
        call.id: call.results
        for call in calls
        if isinstance(call.results, kind) and not call.from_artifact_tool
    }
    return ToolRegistry([_make_tool(query, artifacts) for query in _QUERIES if artifacts])


def _make_tool(query: _Query, artifacts: dict[str, SpooledArtifact]) -> ArtifactTool:
    call_id = {
        "type": "string",
        "enum": list(artifacts),
        "description": "Id of the tool call whose result is read",
    }

    async def answer(args: dict[str, Any], ctx: Any, meta: Any) -> str:
        return result_text(await query.answer(artifacts[args["callId"]], args))

    return ArtifactTool(
        name=query.name,
        description=query.description,
        input_schema={
            "type": "object",
            "properties": {"callId": call_id, **query.properties},
            "required": ["callId", *query.required],
        },
        handler=answer,
        ephemeral=True,
        on_collision="replace",
    )


def result_text(result: Any) -> str:
    """Write an answer as text: lines joined, numbers plain, anything else as indented JSON.

    An empty list gives `(empty list)`, None gives `(undefined)`.
    """
    match result:
        case None:
            return "(undefined)"
        case str():
            return result
        case []:
            return "(empty list)"
        case list() if all(isinstance(line, str) for line in result):
            return "\n".join(result)
        case _:
            plain = to_jsonable_python(result, fallback=opaque)
            return json.dumps(plain, indent=2, ensure_ascii=False)
