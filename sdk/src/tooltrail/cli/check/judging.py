"""Asks a server about definitions: the comparison with its published contracts, and replays.

Owns the requests, the waiting, and that no replay goes on for a check that has ended.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from tooltrail.cli.check.definitions import CheckError, Definition, in_parts
from tooltrail.cli.check.policy import RequiredSet
from tooltrail.cli.check.report import (
    CheckedTool,
    Finding,
    Report,
    findings_of_comparison,
    findings_of_replay,
)
from tooltrail.transport import Answer, Transport, UnreachableError

TOOLS_MAX: Final = 50
"""Definitions in a request, as the server allows."""
PART_BYTES: Final = 900_000
POLL_SECONDS: Final = 1.0
_AGAIN: Final = {429, 500, 502, 503, 504}
"""Statuses after which a replay is asked for again."""
_UNDER_WAY: Final = ("waiting", "running")
_STRANGE: Final = "the response is not from a Tooltrail server"

type Progress = Callable[[str, int, int | None], None]
"""Gets the name of a tool, how many of its calls are read, and how many there are; None: not known
yet."""


@dataclass(frozen=True, slots=True)
class Options:
    """How strictly definitions are checked."""

    range: str = "7d"
    """How far back calls are replayed."""
    limit: int = 10_000
    """Maximum of calls replayed of a tool."""
    replays: bool = True
    require_published: bool = False
    """Whether a tool without a published version could not be checked, instead of being new."""
    required_sets: Mapping[str, RequiredSet] = field(default_factory=dict[str, RequiredSet])
    """Regression sets by tool, without which it could not be checked."""


class Judging:
    """The questions about one set of definitions. `deadline` is of `time.monotonic`."""

    def __init__(
        self, transport: Transport, url: str, options: Options, deadline: float, progress: Progress
    ) -> None:
        self._transport = transport
        self._url = url.rstrip("/")
        self._options = options
        self._deadline = deadline
        self._progress = progress

    def check(self, definitions: Sequence[Definition]) -> Report:
        """Compare the definitions and replay calls. Raises CheckError and UnreachableError."""
        report = Report(self._url, [], [])
        try:
            for body, part in in_parts(definitions, TOOLS_MAX, PART_BYTES):
                answer = _document(self._transport.post("registry/compare", body))
                if answer["note"]:
                    report.notes.append(str(answer["note"]))
                report.tools += [
                    self._compared(definition, compared)
                    for definition, compared in zip(part, answer["tools"], strict=True)
                ]
            _refuse_twins(report.tools)
            self._require_sets(report.tools)
            if self._options.replays:
                self._replay([one for one in report.tools if one.has_changed_schemas])
        except (KeyError, TypeError, ValueError) as error:  # JSON, but not of this API
            raise CheckError(_STRANGE) from error
        return report

    def _compared(self, definition: Definition, compared: Mapping[str, Any]) -> CheckedTool:
        tool = CheckedTool(definition, compared, list(findings_of_comparison(compared)))
        if compared["status"] == "new":
            is_needed = self._options.require_published
            rule = "not-published" if is_needed else "new-tool"
            tool.findings.append(Finding(rule, "The tool has no published version."))
        return tool

    def _require_sets(self, tools: Sequence[CheckedTool]) -> None:
        """Find which published tools lack the regression set that the policy requires."""
        for tool in tools:
            required = self._options.required_sets.get(tool.name)
            if required is None or not tool.compared["version"]:
                continue
            path = f"tools/{tool.compared['tool_id']}/regression-set"
            versions = _document(self._transport.get(path, {}))["versions"]
            if reason := required.why_missing(versions[0] if versions else None):
                tool.findings.append(Finding("no-regression-set", reason))

    def _replay(self, tools: Sequence[CheckedTool]) -> None:
        """Start all replays, and wait for each. Those that have not ended are cancelled."""
        started: list[CheckedTool] = []
        try:
            for tool in tools:
                answer = self._transport.post_json(_replays(tool), self._request(tool))
                if answer.status == 409:  # a schema that is in use, and that no guard can use
                    tool.findings.append(Finding("not-compared", _detail(answer)))
                    continue
                tool.replay = _document(answer)
                path = f"tools/{tool.compared['tool_id']}/replays/{tool.replay['id']}"
                tool.replay_url = f"{self._url}/{path}"
                started.append(tool)
            for tool in started:
                self._wait(tool)
        finally:
            self._cancel([one for one in started if _is_under_way(one)])

    def _request(self, tool: CheckedTool) -> dict[str, Any]:
        schemas = {name: tool.compared[name] for name in ("input_schema", "output_schema")}
        return {"range": self._options.range, "limit": self._options.limit, "schemas": schemas}

    def _wait(self, tool: CheckedTool) -> None:
        """Ask for a replay until it ends, or the time is over."""
        while tool.replay is not None and _is_under_way(tool):
            self._progress(tool.name, tool.replay["calls"], tool.replay["of"])
            left = self._deadline - time.monotonic()
            if left <= 0:
                reason = "The replay did not end in time (--timeout). Is a worker running?"
                tool.findings.append(Finding("not-replayed", reason))
                return
            time.sleep(min(POLL_SECONDS, left))
            with suppress(UnreachableError):
                answer = self._transport.get(f"{_replays(tool)}/{tool.replay['id']}", {})
                if answer.status not in _AGAIN:
                    tool.replay = _document(answer)
        if tool.replay is None:
            return
        self._progress(tool.name, tool.replay["calls"], tool.replay["of"])
        if tool.replay["state"] == "done":
            sides = {"args": "input_schema", "output": "output_schema"}
            schemas = {side: tool.compared[name] for side, name in sides.items()}
            tool.findings += findings_of_replay(tool.replay, schemas)
        else:
            reason = tool.replay["problem"] or f"The replay was {tool.replay['state']}."
            tool.findings.append(Finding("not-replayed", str(reason)))

    def _cancel(self, tools: Sequence[CheckedTool]) -> None:
        for tool in tools:
            assert tool.replay is not None, "only started ones are under way"
            with suppress(UnreachableError):
                self._transport.post_json(f"{_replays(tool)}/{tool.replay['id']}/cancel", {})


def _is_under_way(tool: CheckedTool) -> bool:
    return tool.replay is not None and tool.replay["state"] in _UNDER_WAY


def _replays(tool: CheckedTool) -> str:
    return f"tools/{tool.compared['tool_id']}/replays"


def _refuse_twins(tools: Sequence[CheckedTool]) -> None:
    """The server sees the twins of one request only."""
    first: dict[str, CheckedTool] = {}
    for tool in tools:
        earlier = first.setdefault(tool.name, tool)
        if earlier is not tool and tool.compared["status"] != "refused":
            reason = f"Another definition has this name: {earlier.definition.place}."
            tool.findings.append(Finding("refused", reason))


def _detail(answer: Answer) -> str:
    return str(answer.document.get("detail") or f"{_STRANGE} ({answer.status})")


def _document(answer: Answer) -> dict[str, Any]:
    if answer.status not in (200, 201):
        raise CheckError(_detail(answer))
    if not answer.document:
        raise CheckError(_STRANGE)
    return answer.document
