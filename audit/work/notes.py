"""Write, change and delete notes. Each act is an entry of the ledger; reading a note is none.

An entry names the note's row by a digest, and says label, assignee and state. It does not quote the
text: the ledger never forgets, and an erasure clears texts about erased calls.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import uuid4

from audit.models import Note
from audit.queries.notes import NOTES_MAX, Subject, new_note, notes_about
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant

TEXT_MAX = 4000
LABEL_MAX = 40


class TooManyNotesError(Exception):
    """There are the maximum of notes about this already."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a note says."""

    text: str
    label: str
    assignee: str
    state: str
    fixed_in: str


def add_note(tenant: Tenant, actor: Actor, subject: Subject, wanted: Wanted, now: datetime) -> Note:
    """Write a note. Raises TooManyNotesError. Needs the scope."""
    if len(notes_about(subject)) >= NOTES_MAX:
        raise TooManyNotesError(f"There are {NOTES_MAX} notes about this. Delete one first.")
    note = new_note(subject)
    note.created_at, note.created_by = now, name_of(actor)
    _store(tenant, actor, note, wanted, now, "note.create")
    return note


def change_note(tenant: Tenant, actor: Actor, note: Note, wanted: Wanted, now: datetime) -> bool:
    """Change what a note says. Returns False if it says that already. Needs the scope."""
    if asdict(wanted) == {name: getattr(note, name) for name in asdict(wanted)}:
        return False
    _store(tenant, actor, note, wanted, now, "note.change")
    return True


def delete_note(tenant: Tenant, actor: Actor, note: Note) -> None:
    """Delete a note. Needs the scope."""
    Note.objects.for_tenant(tenant.id).filter(id=note.id).delete()
    record_action(tenant, actor, "note.delete", str(Subject.of(note)), rows=[note])


def _store(
    tenant: Tenant, actor: Actor, note: Note, wanted: Wanted, now: datetime, verb: str
) -> None:
    is_new = verb == "note.create"
    note.text, note.label, note.assignee = wanted.text, wanted.label, wanted.assignee
    note.state, note.fixed_in = wanted.state, wanted.fixed_in
    if note.text:
        note.is_erased = False
    note.salt = uuid4()
    note.changed_at, note.changed_by = now, name_of(actor)
    note.save(force_insert=is_new, force_update=not is_new)
    record_action(
        tenant,
        actor,
        verb,
        str(Subject.of(note)),
        rows=[note],
        note=str(note.id),
        label=note.label,
        assignee=note.assignee,
        state=note.state,
        fixed_in=note.fixed_in,
    )
