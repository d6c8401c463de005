"""Notes: what a note can be about, those of one subject, and the list."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple, Self
from uuid import UUID

from audit.models import About, Note
from tenants.models import new_id
from tenants.scope import current_tenant_id

NOTES_MAX = 50
"""Maximum notes about one subject."""
TOOL_NOTES_MAX = 500
"""How many of the newest notes about kinds of violations are marked in the list of these."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a note is about. `about` says which of the other members are set."""

    about: About
    started_on: date | None = None
    """The UTC day of a call."""
    invocation_id: UUID | None = None
    trace_id: str = ""
    tool_name: str = ""
    tool_versions: tuple[str, ...] = ()
    """The texts by which calls name a version: its number and its digest, or what is not
    registered."""
    code: str = ""
    path: str = ""

    @classmethod
    def of(cls, note: Note) -> Self:
        """The subject of a stored note."""
        columns = cls.__dataclass_fields__.keys() - {"about", "tool_versions"}
        return cls(
            about=About(note.about),
            tool_versions=tuple(note.tool_versions),
            **{name: getattr(note, name) for name in columns},
        )

    @property
    def tool_version(self) -> str:
        """The version as it is shown: its number, if it is registered."""
        return self.tool_versions[0] if self.tool_versions else ""

    def __str__(self) -> str:
        """The subject in words, as it is in the ledger."""
        match self.about:
            case About.CALL:
                return f"call {self.invocation_id}"
            case About.TRACE:
                return f"trace {self.trace_id}"
            case About.VIOLATION:
                return f"violation {self.code} at {self.path} of {self.tool_name}"
            case _:
                return f"version {self.tool_version} of {self.tool_name}"


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes to list. What is empty matches every note."""

    about: str = ""
    state: str = ""
    label: str = ""
    assignee: str = ""


class NotePage(NamedTuple):
    """A page of notes, newest first, and the id for the older page."""

    notes: list[Note]
    older: UUID | None


def note_page(wanted: NoteFilter, *, before: UUID | None = None, size: int) -> NotePage:
    """At most `size` notes older than `before`. One query."""
    notes = Note.objects.for_tenant(current_tenant_id())
    named = {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}
    notes = notes.filter(**{name: value for name, value in named.items() if value})
    if before is not None:
        notes = notes.filter(id__lt=before)
    newest = list(notes.order_by("-id")[: size + 1])
    shown = newest[:size]
    return NotePage(shown, shown[-1].id if len(newest) > size else None)


def notes_about(subject: Subject) -> list[Note]:
    """The notes about this, the oldest first. One query."""
    notes = Note.objects.for_tenant(current_tenant_id()).filter(about=subject.about)
    return list(notes.filter(**_named(subject)).order_by("id")[:NOTES_MAX])


def notes_about_violations(tool_names: Iterable[str]) -> dict[tuple[str, str, str], list[Note]]:
    """The newest notes about kinds of violations, by tool, code and path. One query."""
    notes = Note.objects.for_tenant(current_tenant_id()).filter(about=About.VIOLATION)
    by_kind: dict[tuple[str, str, str], list[Note]] = {}
    for note in notes.filter(tool_name__in=set(tool_names)).order_by("-id")[:TOOL_NOTES_MAX]:
        by_kind.setdefault((note.tool_name, note.code, note.path), []).append(note)
    return by_kind


def find_note(pk: UUID) -> Note | None:
    """The tenant's note with this id, locked until the scope ends; None without one."""
    notes = Note.objects.for_tenant(current_tenant_id()).select_for_update()
    return notes.filter(id=pk).first()


def new_note(subject: Subject) -> Note:
    """A note about this that is not stored yet."""
    named = {name: getattr(subject, name) for name in subject.__dataclass_fields__}
    named["tool_versions"] = list(subject.tool_versions)
    return Note(tenant_id=current_tenant_id(), id=new_id(), is_erased=False, **named)


def _named(subject: Subject) -> dict[str, Any]:
    """The condition that a note is about this."""
    match subject.about:
        case About.CALL:
            return {"invocation_id": subject.invocation_id}
        case About.TRACE:
            return {"trace_id": subject.trace_id}
        case About.VIOLATION:
            return {
                "tool_name": subject.tool_name,
                "code": subject.code,
                "path": subject.path,
            }
        case _:
            named = list(subject.tool_versions)
            return {"tool_name": subject.tool_name, "tool_versions__overlap": named}
