"""The audit log and the server's entries: actions by SQL, and entries in somebody's name."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from tooltrail.ledger import Kind
from tooltrail.ledger.lines import to_base64

from audit.ledger.entries import append_entry
from audit.models import Erasure, ErasureState
from audit.queries.call_query import parse
from audit.retention.erasure import confirm_erasure, start_erasure
from audit.retention.erasure_targets import CallsAlteredError
from audit.retention.event_removal import declare
from config.instants import iso
from config.postgresql.aliases import KEEPER
from tenants.actions import record_action
from tenants.scope import tenant_scope
from tests.support.erasures import read_erasure, run_erasure
from tests.support.factories import make_call
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Act, Tampering, kind, sql
from tests.support.tampering.log import payload, repair_index
from tests.support.tampering.record import DAY, Power, Record, keep_ledger, send
from tests.support.tampering.values import change_row, delete_row
from tools_registry.models import ToolVersion
from tools_registry.versions import contract_of

CHECK, INDEX = Finder.CHECK, Finder.INDEX
BUNDLE, RECEIPT = Finder.BUNDLE, Finder.RECEIPT
APPLICATION, OWNER = Power.APPLICATION, Power.OWNER
_ENTERED = "ledger_index IS NOT NULL"
_OF_NOW = (
    "whoever can write to the database can act now in anybody's name, and everybody can see it"
)
_UNSIGNED = "the worker signs within a minute; before that nothing proves an event's bytes"
_SECONDS = "the worker enters actions within seconds; before that nothing proves them"
_NUMBERED = "SELECT * FROM invocation WHERE tenant_id = %(tenant)s AND tool_name = 'numbered'"
_ONE = (
    "WHERE tenant_id = %(tenant)s"
    " AND id = (SELECT max(id::text)::uuid FROM action WHERE tenant_id = %(tenant)s)"
)


def kinds() -> Iterator[Tampering]:
    """Kinds about actions and entries."""
    yield from (value for value in globals().values() if isinstance(value, Tampering))
    for column in ("id", "at", "user_id", "user_name", "verb", "subject", "details", "rows"):
        yield Tampering(
            "an action was changed", f"action.{column}", OWNER, frozenset({CHECK}), _change(column)
        )
    yield sql(
        "an action was marked as not entered yet",
        APPLICATION,
        f"UPDATE action SET ledger_index = NULL {_ONE}",
        CHECK,
    )
    yield sql(
        "an action was made to claim an entry",
        APPLICATION,
        f"UPDATE action SET ledger_index = 0 {_ONE}",
        CHECK,
        of="of a call",
    )
    yield sql(
        "an action was made to claim an entry",
        APPLICATION,
        f"UPDATE action SET ledger_index = 100000 {_ONE}",
        CHECK,
        of="that does not exist",
    )


def _change(column: str) -> Act:
    def act(record: Record, rng: random.Random) -> None:
        change_row(record, rng, "action", {column}, OWNER, where=_ENTERED)

    return act


@kind("an action was deleted", OWNER, CHECK)
def delete(record: Record, rng: random.Random) -> None:
    delete_row(record, rng, "action", OWNER, where=_ENTERED)


@kind("an action was deleted before it was entered", OWNER, why=_SECONDS)
def delete_waiting(record: Record, rng: random.Random) -> None:
    act_as(record, "call.reveal", "a call")
    delete_row(record, rng, "action", OWNER, where="ledger_index IS NULL")


@kind("an action was changed before it was entered", OWNER, why=_SECONDS)
def change_waiting(record: Record, rng: random.Random) -> None:
    act_as(record, "call.reveal", "a call")
    change_row(record, rng, "action", {"subject"}, OWNER, where="ledger_index IS NULL")


@kind("a trigger suppressed actions", OWNER, of="of reading a payload", why=_SECONDS)
def silence(record: Record, _: random.Random) -> None:
    with silenced(record):
        act_as(record, "call.reveal", "a call")


@kind("a trigger suppressed actions", OWNER, CHECK, of="of a new admin")
def silence_member(record: Record, _: random.Random) -> None:
    with silenced(record):
        record.change(
            "UPDATE membership SET role = 'admin' WHERE tenant_id = %(tenant)s AND role <> 'admin'",
            APPLICATION,
        )
        act_as(record, "member.role", "a member")


@kind("an action dated now was invented", APPLICATION, why=_OF_NOW)
def invent(record: Record, _: random.Random) -> None:
    act_as(record, "call.reveal", "a call")


@kind("an action dated days ago was invented", APPLICATION, CHECK)
def invent_old(record: Record, rng: random.Random) -> None:
    record.change(
        "INSERT INTO action (tenant_id, id, at, user_name, verb, subject, details)"
        " VALUES (%(tenant)s, gen_random_uuid(), %(at)s, 'ada', 'call.reveal', 'a call', '{}')",
        APPLICATION,
        at=timezone.now() - timedelta(days=rng.uniform(0.1, 20)),
    )


@kind("a contract was replaced, and published again by an action of now", OWNER, BUNDLE)
def publish_again(record: Record, rng: random.Random) -> None:
    cast = record.cast
    with tenant_scope(record.tenant_id):
        versions = ToolVersion.objects.filter(tenant=cast.tenant).select_related("tool")
        version = rng.choice(list(versions.order_by("id")))
        contract = contract_of(version).model_copy(update={"description": "forged"})
    record.change(
        "UPDATE tool_version SET description = 'forged', digest = %(digest)s"
        " WHERE tenant_id = %(tenant)s AND id = %(id)s",
        OWNER,
        digest=contract.digest,
        id=version.id,
    )
    with tenant_scope(record.tenant_id):
        record_action(
            cast.tenant,
            cast.admin,
            "tool.publish",
            version.tool.name,
            rows=[version],
            version=version.number,
            digest=contract.digest,
            published_at=iso(version.created_at),
            published_by=version.created_by or version.created_by_key,
        )


@kind("an erasure was declared that nobody confirmed", OWNER, CHECK, BUNDLE)
def declare_unconfirmed(record: Record, rng: random.Random) -> None:
    declare_erased(record, rng, Kind.ERASURE, "ada", erasure=UUID(int=rng.getrandbits(128)))


@kind("an erasure was declared in the name of another", OWNER, CHECK, BUNDLE)
def declare_in_anothers_name(record: Record, rng: random.Random) -> None:
    with tenant_scope(record.tenant_id):
        real = Erasure.objects.for_tenant(record.tenant_id).get()
    declare_erased(record, rng, Kind.ERASURE, "ada", erasure=real.id)


@kind("payloads were declared expired that are too young", OWNER, CHECK)
def declare_expired(record: Record, rng: random.Random) -> None:
    declare_erased(record, rng, Kind.RETENTION, "Tooltrail")


@kind("an erasure was declared with a forged confirmation dated now", OWNER, why=_OF_NOW)
def declare_and_confirm(record: Record, rng: random.Random) -> None:
    name = UUID(int=rng.getrandbits(128))
    with tenant_scope(record.tenant_id):
        record_action(record.cast.tenant, "ada", "erasure.confirm", str(name), reason="GDPR")
    keep_ledger(record, timezone.now())
    declare_erased(record, rng, Kind.ERASURE, "ada", erasure=name, unheld=True)


@kind("a hold was deleted, and what it held declared erased", OWNER, CHECK)
def erase_held(record: Record, rng: random.Random) -> None:
    record.change("DELETE FROM legal_hold WHERE tenant_id = %(tenant)s", OWNER)
    declare_erased(record, rng, Kind.RETENTION, "Tooltrail")


@kind("a call was added to an erasure", APPLICATION, CHECK, of="before it was confirmed")
def add_before_confirmation(record: Record, _: random.Random) -> None:
    one = preview(record)
    add_call(record, one)
    with pytest.raises(CallsAlteredError):
        confirm(record, one)


@kind("a call was added to an erasure", APPLICATION, CHECK, of="after it was confirmed")
def add_after_confirmation(record: Record, _: random.Random) -> None:
    one = preview(record)
    confirm(record, one)
    add_call(record, one)
    run_erasure(record.cast, one.id)
    assert read_erasure(record.cast, one.id).erased_events == 0


@kind("a call was added to an erasure", APPLICATION, CHECK, of="as a span of a listed one")
def add_as_span(record: Record, _: random.Random) -> None:
    one = preview(record)
    confirm(record, one)
    record.change(
        "INSERT INTO otlp_span (tenant_id, started_on, span_uuid, invocation_id, call_started_at,"
        " tool_name, scope, kind)"
        " SELECT i.tenant_id, i.started_on, i.invocation_id, c.invocation_id, c.started_at,"
        " 'guarded', '', 1"
        f" FROM ({_NUMBERED}) i JOIN erasure_call c ON c.tenant_id = %(tenant)s"
        " AND c.erasure_id = %(erasure)s"
        " AND (c.started_at AT TIME ZONE 'UTC')::date = i.started_on LIMIT 1",
        APPLICATION,
        erasure=one.id,
    )
    run_erasure(record.cast, one.id)
    assert read_erasure(record.cast, one.id).state == ErasureState.DONE


@kind("an entry was forged", APPLICATION, CHECK, INDEX, of="baseline")
def forge_baseline(record: Record, _: random.Random) -> None:
    forge(record, Kind.BASELINE, rows={}, versions=[], payload_days=None, ledger_keys=[])


@kind("an entry was forged", APPLICATION, CHECK, of="key")
def forge_key(record: Record, rng: random.Random) -> None:
    forge(record, Kind.KEY, public_key=to_base64(rng.randbytes(32)), by="operator", replaces=[])


@kind("an entry was forged", APPLICATION, CHECK, of="epoch")
def forge_epoch(record: Record, _: random.Random) -> None:
    forge(record, Kind.EPOCH, epoch=7, origin="x", reason="r", by="operator", previous=None)


@kind("an entry was forged", APPLICATION, CHECK, of="hold that was set")
def forge_hold(record: Record, rng: random.Random) -> None:
    name = str(UUID(int=rng.getrandbits(128)))
    forge(record, Kind.HOLD, hold=name, state="set", name="forged", covers={"case_id": "x"})


@kind("an entry was forged", APPLICATION, CHECK, of="hold that was released")
def forge_release(record: Record, _: random.Random) -> None:
    (hold,) = record.run(
        "SELECT id FROM legal_hold WHERE tenant_id = %(tenant)s AND released_at IS NULL ORDER BY id"
    )[0]
    forge(record, Kind.HOLD, hold=str(hold), state="released", name="x", reason="r")


@kind("an invented call was stored", APPLICATION, of="dated now", why=_OF_NOW)
def send_now(record: Record, _: random.Random) -> None:
    send(record, timezone.now(), make_call())


@kind("an invented call was stored", APPLICATION, CHECK, of="dated days ago")
def send_old(record: Record, rng: random.Random) -> None:
    at = timezone.now() - rng.uniform(1, 20) * DAY
    send(record, at, make_call(started_at=at))


@kind("an invented call was stored", APPLICATION, CHECK, of="dated tomorrow")
def send_future(record: Record, _: random.Random) -> None:
    send(record, timezone.now() + DAY, make_call())


@kind("the unsigned tail was changed, with its leaf", OWNER, why=_UNSIGNED)
def change_tail(record: Record, rng: random.Random) -> None:
    send(record, timezone.now(), make_call(args={"city": "London"}))
    batch = record.batches()[-1]
    batch.forge(0, batch.given[0][1].replace(b"London", b"Nowhere"))
    record.write(batch)


@kind("the unsigned tail was cut, with the index", OWNER, RECEIPT)
def cut_tail(record: Record, _: random.Random) -> None:
    record.acknowledged = send(record, timezone.now(), make_call())
    batch = record.batches()[-1]
    record.change(
        "DELETE FROM batch WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
    )
    record.change("UPDATE ledger_head SET size = size - 2 WHERE tenant_id = %(tenant)s", OWNER)
    repair_index(record)


def act_as(record: Record, verb: str, subject: str) -> None:
    """An action in the admin's name."""
    with tenant_scope(record.tenant_id):
        record_action(record.cast.tenant, record.cast.admin, verb, subject)


def preview(record: Record) -> Erasure:
    """An erasure of calls of a tool that no hold covers, counted and not confirmed."""
    record.touch("tenant_setting", "ledger_erasure", "violation", "decision", "otlp_span")
    record.touch("erasure", "erasure_call", "payload_search_hit", "rejected_event")
    cast = record.cast
    with tenant_scope(record.tenant_id):
        one = start_erasure(cast.tenant, cast.admin, parse("tool:guarded"), timezone.now())
    run_erasure(cast, one.id)
    return read_erasure(cast, one.id)


def confirm(record: Record, one: Erasure) -> None:
    """Confirm an erasure. Raises CallsAlteredError."""
    cast = record.cast
    with tenant_scope(record.tenant_id):
        assert confirm_erasure(cast.tenant, cast.admin, one.id, "asked to", timezone.now())


def add_call(record: Record, one: Erasure) -> None:
    """Put a call of another tool on the list of an erasure."""
    record.change(
        "INSERT INTO erasure_call (tenant_id, erasure_id, started_at, invocation_id)"
        f" SELECT tenant_id, %(erasure)s, started_at, invocation_id FROM ({_NUMBERED}) i LIMIT 1",
        APPLICATION,
        erasure=one.id,
    )


def forge(record: Record, kind_of: Kind, **members: object) -> None:
    """Append an entry as the application may."""
    record.touch("batch")
    with tenant_scope(record.tenant_id):
        append_entry(record.tenant_id, kind_of, members, timezone.now())


def declare_erased(
    record: Record,
    rng: random.Random,
    kind_of: Kind,
    actor: str,
    *,
    erasure: UUID | None = None,
    unheld: bool = False,
) -> None:
    """Take an event's bytes away, and append the entry that says so."""
    batch, at = payload(record, rng)
    while unheld and b'"get_weather"' in batch.given[at][1]:
        batch, at = payload(record, rng)
    batch.given[at] = (b"", b"")
    record.write(batch)
    index, now = batch.first_index + at, timezone.now()
    record.touch("ledger_erasure")
    with tenant_scope(record.tenant_id, using=KEEPER):
        declare(
            record.tenant_id,
            kind_of,
            [(index, index + 1)],
            "GDPR",
            actor,
            now,
            using=KEEPER,
            erasure_id=erasure,
        )


@contextmanager
def silenced(record: Record) -> Iterator[None]:
    """A trigger swallows the actions that are recorded meanwhile."""
    record.run(
        "CREATE FUNCTION silence() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        OWNER,
    )
    record.run(
        "CREATE TRIGGER silence BEFORE INSERT ON action FOR EACH ROW EXECUTE FUNCTION silence()",
        OWNER,
    )
    try:
        yield
    finally:
        record.run("DROP FUNCTION silence() CASCADE", OWNER)
