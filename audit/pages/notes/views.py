"""The list of notes, a new note, and one note with change and delete."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audit.models import About, Note, NoteState
from audit.pages.notes.forms import FilterForm, NoteForm
from audit.pages.notes.subjects import (
    SubjectForm,
    UnknownSubjectError,
    address_of,
    members_of,
)
from audit.queries.notes import NoteFilter, Subject, find_note, note_page
from audit.work.notes import TooManyNotesError, add_note, change_note, delete_note
from config.http.ordering import SORTED_MAX, Key, Order, page_in_order, requested_order
from tenants.access import TenantRequest, has_role, tenant_page
from tenants.models import Role

PAGE_SIZE = 50
EDITS = Role.EDITOR
ME = "me"
_COLUMNS: Mapping[str, Key[Note]] = {
    "note": lambda note: note.text.casefold() or None,
    "about": lambda note: note.about,
    "state": lambda note: note.state,
    "label": lambda note: note.label or None,
    "assignee": lambda note: note.assignee.casefold() or None,
    "changed": lambda note: note.changed_at,
}
"""The columns by which notes are sorted."""


class ListedNote(NamedTuple):
    """A note with what it is about."""

    note: Note
    subject: Subject
    address: str


@require_safe
@tenant_page()
def note_list(request: TenantRequest) -> HttpResponseBase:
    """Show notes, newest first; `?assignee=me` those of the user."""
    form = FilterForm(request.GET)
    if not form.is_valid():
        raise Http404("no such filter")
    named = form.cleaned_data
    is_mine = named["assignee"] == ME
    wanted = NoteFilter(**named | ({"assignee": request.user.get_username()} if is_mine else {}))
    order = requested_order(request, _COLUMNS, "")
    notes, pager = _page(request, wanted, order)
    context = {
        "notes": [listed(note) for note in notes],
        "order": order,
        **pager,
        "wanted": named,
        "is_mine": is_mine,
        "is_filtered": any(named.values()),
        "states": {"": "All", **dict(NoteState.choices)},
        "kinds": {"": "Anything", **dict(About.choices)},
        "may_edit": has_role(request.membership, EDITS),
    }
    return render(request, "notes/note_list.html", context)


def _page(
    request: TenantRequest, wanted: NoteFilter, order: Order
) -> tuple[list[Note], dict[str, Any]]:
    """Return the notes of the page that the address names, and the context of its pager."""
    place = request.GET.get("before", "")
    if order.column:
        newest = note_page(wanted, size=SORTED_MAX + 1).notes
        page = page_in_order(
            newest, _COLUMNS, order, identify=lambda one: one.id, after=place, size=PAGE_SIZE
        )
        return page.rows, page.pager
    before = _read_id(place)
    newest_first = note_page(wanted, before=before, size=PAGE_SIZE)
    return newest_first.notes, {"older": newest_first.older, "is_first_page": before is None}


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=EDITS)
def note_new(request: TenantRequest) -> HttpResponseBase:
    """Write a note about what the members `about` and so on name."""
    is_sent = request.method == "POST"
    named = SubjectForm(request.POST if is_sent else request.GET)
    if not named.is_valid():
        raise Http404("nothing that a note can be about")
    try:
        subject = named.subject()
    except UnknownSubjectError as error:
        raise Http404("no such call or trace") from error
    form = NoteForm(request.tenant, request.POST if is_sent else None)
    if is_sent and form.is_valid():
        try:
            add_note(request.tenant, request.user, subject, form.wanted(), timezone.now())
        except TooManyNotesError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "Note saved.")
            return redirect(address_of(subject))
    return _form(request, subject, form, None)


@require_safe
@tenant_page()
def note_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show one note, to editors as a form."""
    note = _note_or_404(pk)
    return _form(request, Subject.of(note), NoteForm(request.tenant, note=note), note)


@require_POST
@tenant_page(role=EDITS)
def note_change(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Change what a note says."""
    note = _note_or_404(pk)
    subject = Subject.of(note)
    form = NoteForm(request.tenant, request.POST, note=note)
    if not form.is_valid():
        return _form(request, subject, form, note)
    if change_note(request.tenant, request.user, note, form.wanted(), timezone.now()):
        messages.success(request, "Note changed.")
    return redirect(address_of(subject))


@require_POST
@tenant_page(role=EDITS)
def note_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a note. That it was there stays in the ledger, without its text."""
    note = _note_or_404(pk)
    delete_note(request.tenant, request.user, note)
    messages.success(request, "Note deleted.")
    return redirect(address_of(Subject.of(note)))


def listed(note: Note) -> ListedNote:
    """Return the note with what it is about, for templates."""
    subject = Subject.of(note)
    return ListedNote(note, subject, address_of(subject))


def new_address(subject: Subject) -> str:
    """Return the address of a new note about this."""
    return f"{reverse('note_new')}?{urlencode(members_of(subject))}"


def _form(
    request: TenantRequest, subject: Subject, form: NoteForm, note: Note | None
) -> HttpResponseBase:
    context: dict[str, Any] = {
        "form": form,
        "note": note,
        "subject": subject,
        "members": members_of(subject),
        "address": address_of(subject),
        "may_edit": has_role(request.membership, EDITS),
    }
    status = 422 if form.is_bound else 200
    return render(request, "notes/note_form.html", context, status=status)


def _note_or_404(pk: UUID) -> Note:
    note = find_note(pk)
    if note is None:
        raise Http404("no such note")
    return note


def _read_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
