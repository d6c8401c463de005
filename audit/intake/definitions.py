"""Stores what servers say of their tools: each definition once, each change with an entry.

A list says nothing about tools that are not in it. So each tool is compared with the definition
that was in force at the list's time. If one differs, the list is a change: a row for each changed
tool, and one entry in the ledger with their definitions. Lists may arrive late and repeatedly.

The first list of a server is what later ones are compared with. Its definitions need no approval;
every other definition does. A server whose list changes more than `ENTRIES_PER_HOUR` times in an
hour gets no further entries in that hour. Further changes are counted, and the definition in force
is unknown from then on, which counts as unapproved: a change cannot hide behind others.

An entry names the rows that it is the reason of, like an action (`tenants.row_digests`).
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import models
from tooltrail.ledger import Kind

from audit.events.definitions import Definition, Sighting
from audit.events.instants import instant_of
from audit.ledger.entries import append_batch, raw_of
from audit.models import StoredDefinition, StoredDefinitionChange, StoredServedDefinition
from audit.sql.run import rows
from tenants.models import new_id
from tenants.row_digests import digests_of

ENTRIES_PER_HOUR: Final = 6
"""Changes of one server that become entries of the ledger."""
SERVERS_MAX: Final = 500
"""Servers of one tenant. Lists of further ones are counted together, under `OTHERS`."""
TOOLS_MAX: Final = 2_000
"""Tools of one server. Beyond them, changes that are only counted add no further tools."""
OTHERS: Final = "(other servers)"
UNKNOWN: Final = ""
"""In place of the digest of a definition that changed too often to be recorded."""


def see_definitions(tenant_id: UUID, sightings: Sequence[Sighting], now: datetime) -> None:
    """Store sightings, in the tenant's open scope. Locks the ledger's head: call it last."""
    # In one order, so that requests wait for each other and do not deadlock.
    ordered = sorted(sightings, key=lambda each: (each.server, each.seen_us))
    entries = [entry for each in ordered if (entry := _see(tenant_id, each, now)) is not None]
    if not entries:
        return
    ids = [new_id() for _ in entries]
    raws = [
        raw_of(Kind.DEFINITION, event_id, now, entry.members)
        for event_id, entry in zip(ids, entries, strict=True)
    ]
    events = list(zip(ids, raws, strict=True))
    first_index = append_batch(tenant_id, Kind.DEFINITION, events, now)
    for at, entry in enumerate(entries):
        rows("note_definition_entry", entry.place | {"ledger_index": first_index + at})


class _Entry(NamedTuple):
    """A change that is to be entered in the ledger, and which rows it is about."""

    members: dict[str, Any]
    place: dict[str, Any]


def _see(tenant_id: UUID, sighting: Sighting, now: datetime) -> _Entry | None:
    """Store one sighting. Returns what is to be entered."""
    seen_at = instant_of(sighting.seen_us)
    ((count, first_at),) = rows("definition_servers_known", {"server": sighting.server})
    is_known = first_at is not None
    server = sighting.server if is_known or count < SERVERS_MAX else OTHERS
    place = {"server": server, "seen_at": seen_at}
    hour_at = now.replace(minute=0, second=0, microsecond=0)
    ((is_first, entries),) = rows("see_server", place | {"hour_at": hour_at})
    names = [each.name for each in sighting.definitions]
    in_force: dict[str, str] = dict(rows("definitions_in_force_at", place | {"tool_names": names}))
    changed = [each for each in sighting.definitions if in_force.get(each.name) != each.digest]
    if changed and (entries >= ENTRIES_PER_HOUR or server == OTHERS):
        _count(sighting, server, changed, in_force)
        kept = [each for each in sighting.definitions if each not in changed]
        _write(place, kept, is_first=False)
        return None
    # A long list has parts, which were seen at one moment. A server whose row was deleted by SQL
    # does not get another first list.
    is_first = (is_first or first_at == seen_at) and not rows("server_changed_before", place)
    written = _write(place, sighting.definitions, is_first=is_first)
    new = _change(sighting, server, [(each.name, each.digest) for each in changed])
    entered = [each for each in changed if each.name in new]
    if not entered:
        return None
    rows("count_server_changes", {"server": server, "entries": 1, "unrecorded": 0})
    written += [
        StoredDefinitionChange(
            server=server, tool_name=each.name, seen_at=seen_at, digest=each.digest
        )
        for each in entered
    ]
    members = _members(sighting, server, entered, in_force)
    members["rows"] = digests_of(tenant_id, written)
    return _Entry(members, place | {"tool_names": [each.name for each in entered]})


def _write(
    place: dict[str, Any], definitions: Sequence[Definition], *, is_first: bool
) -> list[models.Model]:
    """Count the definitions as seen. Returns the rows that are new."""
    if not definitions:
        return []
    listed = sorted(definitions, key=lambda each: each.digest)
    digests = [each.digest for each in listed]
    texts = rows(
        "insert_definitions", {"digests": digests, "contents": [each.text for each in listed]}
    )
    ids = [new_id() for _ in listed]
    seen = rows(
        "see_definitions",
        place
        | {
            "ids": ids,
            "tool_names": [each.name for each in listed],
            "digests": digests,
            "state": "first" if is_first else "pending",
        },
    )
    new = {pk for (pk,) in seen}.intersection(ids)
    return [
        *(StoredDefinition(digest=digest) for (digest,) in texts),
        *(StoredServedDefinition(id=pk) for pk in new),
    ]


def _change(sighting: Sighting, server: str, changes: Sequence[tuple[str, str]]) -> set[str]:
    """Write from when on digests are in force, by tool. Returns the tools with a new row."""
    if not changes:
        return set()
    written = rows(
        "insert_definition_changes",
        {
            "server": server,
            "seen_at": instant_of(sighting.seen_us),
            "server_version": sighting.server_version,
            "client": sighting.client,
            "client_version": sighting.client_version,
            "tool_names": [name for name, _ in changes],
            "digests": [digest for _, digest in changes],
        },
    )
    return {name for (name,) in written}


def _count(
    sighting: Sighting, server: str, changed: Sequence[Definition], in_force: dict[str, str]
) -> None:
    """Count changes without recording them. What is in force is unknown from then on."""
    rows("count_server_changes", {"server": server, "entries": 0, "unrecorded": len(changed)})
    names = [name for each in changed if in_force.get(name := each.name) != UNKNOWN]
    new = [name for name in names if name not in in_force]
    ((tools,),) = rows("count_tools_of_server", {"server": server})
    ignored = set(new[max(0, TOOLS_MAX - tools) :])
    _change(sighting, server, [(name, UNKNOWN) for name in names if name not in ignored])


def _members(
    sighting: Sighting, server: str, entered: Sequence[Definition], in_force: dict[str, str]
) -> dict[str, Any]:
    return {
        "server": server,
        "server_version": sighting.server_version,
        "client": sighting.client,
        "client_version": sighting.client_version,
        "seen_at": instant_of(sighting.seen_us).isoformat(),
        "tools": [
            {
                "name": each.name,
                "digest": each.digest,
                "previous_digest": in_force.get(each.name),
                "definition": json.loads(each.text),
            }
            for each in entered
        ],
    }
