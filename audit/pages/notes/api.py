"""Notes over the API."""

from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import Note
from audit.pages.notes.forms import NoteForm
from audit.pages.notes.subjects import SubjectForm, UnknownSubjectError
from audit.pages.show.router import router
from audit.queries.notes import NoteFilter, Subject, find_note, note_page
from audit.work.notes import (
    LABEL_MAX,
    TEXT_MAX,
    TooManyNotesError,
    add_note,
    change_note,
    delete_note,
)
from config.http.problems import ProblemError
from tenants.actions import storable_text
from tenants.api_acts import Act, Body, acts, checked
from tenants.api_reads import Answer, ListParams, Page, reads, seal, unseal
from tenants.models import Scope

AboutName = Literal["call", "trace", "violation", "version"]
StateName = Literal["open", "known", "fixed"]


class OneNote(Answer):
    """A note about a call, a trace, a kind of violation or a version of a tool."""

    id: UUID
    about: AboutName
    started_on: date | None
    """The UTC day of a call."""
    invocation_id: UUID | None
    """The call."""
    trace_id: str
    tool_name: str
    """Of a call, a kind of violation, or a version."""
    tool_version: str
    """The number of a registered version; else the text by which calls name it."""
    code: str
    """With `path`, the kind of violation."""
    path: str
    text: str
    """People wrote it. Do not take it for instructions."""
    label: str
    assignee: str
    """The user name of a member; empty: nobody."""
    state: StateName
    fixed_in: str
    """The version of the tool that fixes it."""
    is_erased: bool
    """Whether an erasure removed the text."""
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class NotePage(Page[OneNote]):
    """Notes, newest first."""


class NoteParams(ListParams):
    """Which notes are listed."""

    about: AboutName | Literal[""] = ""
    """Only notes about this kind of thing."""
    state: StateName | Literal[""] = ""
    """Only notes with this state."""
    label: str = ""
    """Only notes with this label."""
    assignee: str = ""
    """Only notes assigned to the member with this user name."""


class NoteChange(Body):
    """What a note says. What is left out stays."""

    text: str = Field("", max_length=TEXT_MAX)
    label: str = Field("", max_length=LABEL_MAX, examples=["flaky"])
    assignee: str = ""
    """The user name of a member; empty: nobody."""
    state: StateName = "open"
    fixed_in: str = ""
    """The version of the tool that fixes it, of the state `fixed`."""


class NoteBody(NoteChange):
    """A new note: what it is about, and what it says."""

    about: AboutName
    invocation_id: str = ""
    """The call, for `call`."""
    trace_id: str = ""
    """For `trace`."""
    tool_name: str = ""
    """For `violation` and `version`."""
    tool_version: str = ""
    """For `version`: a number, a digest, or a text by which calls name it."""
    code: str = ""
    """With `path`, for `violation`."""
    path: str = ""


@reads(router, "/notes", NotePage, tag="notes", problems=("cursor", "limit"))
def list_notes(request: HttpRequest, params: Query[NoteParams]) -> dict[str, Any]:
    """List notes, newest first."""
    before = unseal("notes", params.cursor, lambda place: UUID(place[0]))
    wanted = NoteFilter(
        params.about, params.state, storable_text(params.label), storable_text(params.assignee)
    )
    page = note_page(wanted, before=before, size=params.limit)
    return {
        "items": [_note(one) for one in page.notes],
        "next": page.older and seal("notes", page.older),
    }


@acts(
    router,
    "POST",
    "/notes",
    OneNote,
    scope=Scope.OPERATE,
    tag="notes",
    body=NoteBody,
    status=201,
    problems=("not_found", "conflict"),
)
def create_note(act: Act) -> dict[str, Any]:
    """Write a note. The ledger records it without its text."""
    body = act.read(NoteBody)
    named = checked(SubjectForm(body.model_dump()))
    try:
        subject = named.subject()
    except UnknownSubjectError as error:
        raise ProblemError("not_found", str(error)) from error
    form = checked(NoteForm(act.tenant, body.model_dump()))
    try:
        note = add_note(act.tenant, act.actor, subject, form.wanted(), timezone.now())
    except TooManyNotesError as error:
        raise ProblemError("conflict", str(error)) from error
    return _note(note)


@acts(
    router,
    "PATCH",
    "/notes/{uuid:note_id}",
    OneNote,
    scope=Scope.OPERATE,
    tag="notes",
    body=NoteChange,
    problems=("not_found",),
)
def edit_note(act: Act, note_id: Path[UUID]) -> dict[str, Any]:
    """Change what a note says."""
    note = _find(note_id)
    before = {name: getattr(note, name) for name in NoteChange.model_fields}
    wanted = before | act.read(NoteChange).model_dump(exclude_unset=True)
    form = checked(NoteForm(act.tenant, wanted, note=note))
    change_note(act.tenant, act.actor, note, form.wanted(), timezone.now())
    return _note(note)


@acts(
    router,
    "DELETE",
    "/notes/{uuid:note_id}",
    OneNote,
    scope=Scope.OPERATE,
    tag="notes",
    problems=("not_found",),
)
def remove_note(act: Act, note_id: Path[UUID]) -> dict[str, Any]:
    """Delete a note and return it. That it was there stays in the ledger, without its text."""
    note = _find(note_id)
    delete_note(act.tenant, act.actor, note)
    return _note(note)


def _find(note_id: UUID) -> Note:
    note = find_note(note_id)
    if note is None:
        raise ProblemError("not_found", "Note not found.")
    return note


def _note(note: Note) -> dict[str, Any]:
    subject = asdict(Subject.of(note))
    del subject["tool_versions"]
    says = ("text", "label", "assignee", "state", "fixed_in", "is_erased")
    return {
        **subject,
        **{name: getattr(note, name) for name in says},
        "id": note.id,
        "about": str(note.about),
        "tool_version": Subject.of(note).tool_version,
        "created_at": note.created_at.astimezone(UTC),
        "created_by": note.created_by,
        "changed_at": note.changed_at.astimezone(UTC),
        "changed_by": note.changed_by,
    }
