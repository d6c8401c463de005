"""Applies tools of the registry: contracts are published, and none is ever removed."""

from collections.abc import Callable, Iterator
from typing import Any

from audit.declared.work import ChangeAction, Work
from tools_registry.changes import Publisher
from tools_registry.exchange.applying import Way, import_tool
from tools_registry.exchange.reading import Entry, UnreadableError, open_document
from tools_registry.schemas import name_in


def apply_tools(
    work: Work, wanted: list[dict[str, Any]], progress: Callable[[int, int], None]
) -> None:
    """Import tools as `registry import --publish` does."""
    way = Way(
        as_drafts=False, by=Publisher(operator=work.actor), reason=f"Applied from {work.file}."
    )
    names: dict[str, str] = {}
    entries = list(_entries(work, wanted))
    for number, (path, entry) in enumerate(entries, 1):
        read = entry.read()
        first = names.setdefault(read.name, path) if read.name else path
        if first != path:
            work.refuse(path, f"has the name of {first}")
            continue
        plan = import_tool(work.tenant, read, way)
        for problem in plan.problems:
            work.refuse(path, problem.removeprefix(f"{entry.path}: ").removeprefix(entry.path))
        if not plan.problems and plan.steps:
            action: ChangeAction = "change" if plan.status == "changed" else "create"
            work.did(action, "tool", read.name, ", ".join(plan.step_texts))
        progress(number, len(entries))


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
