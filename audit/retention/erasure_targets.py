"""Which calls an erasure covers, held to the entries of its preview and its confirmation."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.events.instants import EPOCH
from audit.ledger.erased_calls import CONFIRMED, PREVIEWED, ListedCall, Stated, listed_calls
from audit.ledger.own_entries import own_entries
from audit.models import Erasure
from audit.sql.run import run
from tenants.models import Action

_BEFORE = timedelta(minutes=10)
"""How much earlier than its own time an action may seem to be entered: clocks differ."""


class CallsAlteredError(Exception):
    """The list of calls is not the one that was previewed and confirmed. None may be erased."""

    def __init__(self) -> None:
        super().__init__(
            "The list of calls is not the one that was previewed. Nothing is erased. Start a new"
            " erasure."
        )


class _Action(msgspec.Struct):
    verb: str
    subject: str
    actor: str
    details: dict[str, Any]


class Targets:
    """The calls of one erasure, read once for a slice: a row that is added later does not count."""

    def __init__(self) -> None:
        self.calls: Sequence[ListedCall] = ()
        """By start and id."""
        self.ids: frozenset[UUID] = frozenset()
        """Of the calls, and of spans that were merged into them."""

    def read(self, erasure: Erasure, *, is_dry: bool, using: str) -> None:
        """Read them unless they are read. Raises CallsAlteredError, not in a dry run."""
        if self.calls:
            return
        calls = listed_calls(erasure.tenant_id, erasure.id, using=using)
        if not is_dry:
            _hold_to_entries(erasure, Stated.of(calls), using)
        self.calls = calls
        ids = {invocation_id for _, invocation_id in calls}
        merged = run("erasure_merged_spans", using=using, erasure_id=erasure.id)
        self.ids = frozenset(ids | {span for invocation_id, span in merged if invocation_id in ids})


def previewed_calls(erasure: Erasure) -> Stated:
    """What the preview states of the calls that are listed now. Raises CallsAlteredError.

    Two queries; needs the scope.
    """
    listed = Stated.of(listed_calls(erasure.tenant_id, erasure.id))
    details = (
        Action.objects.filter(
            tenant_id=erasure.tenant_id,
            at__gte=_started_at(erasure),
            verb=PREVIEWED,
            subject=str(erasure.id),
        )
        .order_by("at", "id")
        .values_list("details", flat=True)
        .first()
    )
    if details is None or Stated.read(details) != listed:
        raise CallsAlteredError
    return listed


def _hold_to_entries(erasure: Erasure, listed: Stated, using: str) -> None:
    """Raise CallsAlteredError unless preview and confirmation are entries that state these calls.

    Of each the first entry counts. Reads the server's entries since the erasure was started.
    """
    first: dict[str, _Action] = {}
    for entry in own_entries(
        erasure.tenant_id, {Kind.ACTION}, first_index=_first_index(erasure, using), using=using
    ):
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            action = msgspec.json.decode(entry.raw, type=_Action)
            if action.verb in (PREVIEWED, CONFIRMED) and action.subject == str(erasure.id):
                first.setdefault(action.verb, action)
    stated = [first[verb].details for verb in (PREVIEWED, CONFIRMED) if verb in first]
    if [Stated.read(each) for each in stated] != [listed, listed]:
        raise CallsAlteredError
    confirmed = first[CONFIRMED]
    by = confirmed.actor, confirmed.details.get("reason")
    if by != (erasure.confirmed_by, erasure.reason):
        raise CallsAlteredError


def _first_index(erasure: Erasure, using: str) -> int:
    """Where in the log the first entry about an erasure may be."""
    started_at = _started_at(erasure)
    ((begin, _),) = run(
        "erasure_begin", using=using, first_at=started_at, first_day=started_at.date()
    )
    return begin or 0


def _started_at(erasure: Erasure) -> datetime:
    """No action about an erasure is older: its id is a UUIDv7, which the ledger proves."""
    return EPOCH + timedelta(milliseconds=erasure.id.int >> 80) - _BEFORE
