"""Which calls match the payload conditions of a query, such as `args.city:London`.

Payloads are only in the log. The payloads of calls that the index found are read from it, some
hundred at once. A call whose payload was erased or cannot be read never matches.
"""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from audit.events.json_values import Number, parse
from audit.events.payload_paths import values_at
from audit.log.payload import LogPayloadError, StoredEvent, read_events
from audit.queries.call_filter import (
    AllOf,
    AnyOf,
    Condition,
    Contains,
    Has,
    Not,
    PayloadHas,
    Text,
    leaves,
)
from audit.queries.listed_call import ListedCall, Place
from tenants.scope import current_tenant_id


def holding(calls: Sequence[ListedCall], wanted: tuple[Condition, ...]) -> list[ListedCall]:
    """The calls for which all payload conditions hold. Needs the tenant's scope.

    One query; each batch that has one of the events is decompressed.
    """
    fields = {
        leaf.payload for each in wanted for leaf in leaves(each) if isinstance(leaf, PayloadHas)
    }
    places: dict[UUID, dict[str, Place]] = {}
    for call in calls:
        own = places[call.invocation_id] = {}
        if "args" in fields and call.start_place is not None:
            own["args"] = call.start_place
        if "output" in fields and call.end_place is not None:
            own["output"] = call.end_place
    events = _events([place for own in places.values() for place in own.values()])
    return [call for call in calls if _holds_all(wanted, places[call.invocation_id], events)]


def payload_holds(condition: Condition, payloads: dict[str, Any]) -> bool:
    """Whether a condition holds for payloads: `args` and `output` as `json_values` parses them."""
    match condition:
        case PayloadHas(payload, steps, value):
            if payload not in payloads:
                return False
            return any(_is(stored, value) for stored in values_at(payloads[payload], steps))
        case Not(of):
            return not payload_holds(of, payloads)
        case AllOf(of):
            return all(payload_holds(each, payloads) for each in of)
        case AnyOf(of):
            return any(payload_holds(each, payloads) for each in of)
        case Has() | Contains():
            raise TypeError("this is of the index")


def _events(places: list[Place]) -> dict[Place, StoredEvent]:
    try:
        return read_events(current_tenant_id(), places)
    except LogPayloadError:  # one damaged batch must not hide the others
        events: dict[Place, StoredEvent] = {}
        for place in places:
            try:
                events |= read_events(current_tenant_id(), [place])
            except LogPayloadError:
                continue
        return events


def _holds_all(
    wanted: tuple[Condition, ...], places: dict[str, Place], events: dict[Place, StoredEvent]
) -> bool:
    payloads: dict[str, Any] = {}
    for payload, place in places.items():
        event = events.get(place)
        if event is None or event.raw is None:
            return False
        try:
            document = parse(event.raw)
        except ValueError:
            return False
        if isinstance(document, dict) and payload in document:
            payloads[payload] = document[payload]
    return all(payload_holds(each, payloads) for each in wanted)


def _is(stored: Any, wanted: Text) -> bool:
    """Whether a scalar matches the text. Lists and objects match only `*` alone."""
    if wanted.is_anything:
        return True
    match stored:
        case Number():
            text = str(stored)
            if not wanted.is_prefix and _number(text) is not None:
                return text == wanted.value or _number(text) == _number(wanted.value)
        case str():
            text = stored
        case True | False | None:
            text = {True: "true", False: "false", None: "null"}[stored]
        case _:
            return False
    return text.startswith(wanted.value) if wanted.is_prefix else text == wanted.value


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
