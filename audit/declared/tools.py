"""Applies tools of the registry: contracts are published, and none is ever removed."""

from collections.abc import Callable, Iterator
from itertools import batched
from typing import Any

from audit.declared.work import ChangeAction, Work
from tools_registry.changes import Publisher
from tools_registry.exchange.applying import Way, make_planned
from tools_registry.exchange.document import ReadTool
from tools_registry.exchange.planning import PlannedTool, plan_import
from tools_registry.exchange.reading import Entry, UnreadableError, open_document
from tools_registry.models import Tool
from tools_registry.schemas import compile_for_arrival, name_in
from tools_registry.tools import check_on_arrival
from tools_registry.versions import find_version

_AT_ONCE = 200
"""Tools that are planned together: one by one, a thousand need 5,000 statements."""


def apply_tools(
    work: Work,
    wanted: list[dict[str, Any]],
    referred: set[str],
    progress: Callable[[int, int], None],
) -> None:
    """Import tools as `registry import --publish` does.

    In a dry run the plan is the result: only tools that later sections refer to are made.
    """
    way = Way(as_drafts=False, by=_publisher(work), reason=_reason(work))
    entries = list(_entries(work, wanted))
    done = 0
    for some in batched(_without_twins(work, entries), _AT_ONCE):
        plans = plan_import(
            work.tenant.pk,
            [read for *_, read in some],
            as_drafts=False,
            are_locked=not work.options.is_dry,
        )
        for (path, entry, read), plan in zip(some, plans, strict=True):
            if not work.options.is_dry or read.name in referred:
                make_planned(work.tenant, plan, way)
            _note(work, path, entry, plan)
            done += 1
            progress(done, len(entries))


def apply_checks(work: Work, wanted: list[str]) -> None:
    """Turn on that the server validates the outputs of these tools. After the tools."""
    stored = Tool.objects.filter(tenant=work.tenant, name__in=wanted)
    tools = {one.name: one for one in stored}
    for index, name in enumerate(wanted):
        path, tool = f"checks_on_arrival[{index}]", tools.get(name)
        if tool is None:
            work.refuse(path, f"there is no tool {name!r}")
        elif not tool.is_checked_on_arrival:
            _check(work, path, tool)
    if work.options.prunes:
        others = Tool.objects.filter(tenant=work.tenant, is_checked_on_arrival=True)
        for tool in others.exclude(name__in=wanted).order_by("name"):
            check_on_arrival(tool, _publisher(work), is_on=False, reason=_reason(work))
            work.did("remove", "check on arrival", tool.name)


def _check(work: Work, path: str, tool: Tool) -> None:
    version = find_version(tool, tool.current_number) if tool.current_number else None
    try:
        compile_for_arrival(version.output_schema if version else None)
    except ValueError as error:
        work.refuse(path, f"outputs of {tool.name} {error}")
        return
    check_on_arrival(tool, _publisher(work), is_on=True, reason=_reason(work))
    work.did("create", "check on arrival", tool.name)


def _publisher(work: Work) -> Publisher:
    return Publisher(operator=work.actor)


def _reason(work: Work) -> str:
    return f"Applied from {work.file}."


def _note(work: Work, path: str, entry: Entry, plan: PlannedTool) -> None:
    for problem in plan.problems:
        work.refuse(path, problem.removeprefix(f"{entry.path}: ").removeprefix(entry.path))
    if not plan.problems and plan.steps:
        action: ChangeAction = "change" if plan.status == "changed" else "create"
        work.did(action, "tool", plan.read.name, ", ".join(plan.step_texts))


def _without_twins(
    work: Work, entries: list[tuple[str, Entry]]
) -> Iterator[tuple[str, Entry, ReadTool]]:
    """The tools, read. One with the name of an earlier one is refused."""
    names: dict[str, str] = {}
    for path, entry in entries:
        read = entry.read()
        first = names.setdefault(read.name, path) if read.name else path
        if first == path:
            yield path, entry, read
        else:
            work.refuse(path, f"has the name of {first}")


def _entries(work: Work, wanted: list[dict[str, Any]]) -> Iterator[tuple[str, Entry]]:
    """The tools with their paths; those of another file, too."""
    for index, content in enumerate(wanted):
        path = f"tools[{index}]"
        if content.keys() != {"file"}:
            yield path, Entry(path, name_in(content) or "", content, "versions" in content)
            continue
        name = content["file"]
        try:
            data = (work.secrets.folder / str(name)).read_bytes()
            document = open_document(data, limit=None)
        except OSError as error:
            work.refuse(f"{path}.file", f"{name} cannot be read ({error.strerror})")
        except (UnreadableError, ValueError) as error:
            work.refuse(f"{path}.file", f"{name}: {error}")
        else:
            for entry in document.entries:
                yield f"{path}.file: {name}: {entry.path}", entry
