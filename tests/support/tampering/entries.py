"""The audit log and the server's entries: actions by SQL, and entries in somebody's name."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from django.utils import timezone
from tooltrail.ledger import Kind
from tooltrail.ledger.lines import to_base64

from audit.ledger.entries import append_entry
from audit.models import Erasure
from audit.retention.event_removal import declare
from config.postgresql.aliases import KEEPER
from tenants.actions import record_action
from tenants.scope import tenant_scope
from tests.support.factories import make_call
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Act, Tampering, kind, sql
from tests.support.tampering.log import payload, repair_index
from tests.support.tampering.record import DAY, Power, Record, keep_ledger, send
from tests.support.tampering.values import change_row, delete_row

CHECK, INDEX = Finder.CHECK, Finder.INDEX
BUNDLE, RECEIPT = Finder.BUNDLE, Finder.RECEIPT
APPLICATION, OWNER = Power.APPLICATION, Power.OWNER
_ENTERED = "ledger_index IS NOT NULL"
_OF_NOW = "whoever can write to the database can act now in anybody's name, for everybody to see"
_SAFE = "nothing is erased while the entries and the table of holds differ"
_UNSIGNED = "the worker signs within a minute; before that nothing proves an event's bytes"
_SECONDS = "the worker enters actions within seconds; before that nothing proves them"
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
        "an action was made one that waits",
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


@kind("actions were silenced by a trigger", OWNER, of="of reading a payload", why=_SECONDS)
def silence(record: Record, _: random.Random) -> None:
    with silenced(record):
        act_as(record, "call.reveal", "a call")


@kind("actions were silenced by a trigger", OWNER, CHECK, of="of a new admin")
def silence_member(record: Record, _: random.Random) -> None:
    with silenced(record):
        record.change(
            "UPDATE membership SET role = 'admin' WHERE tenant_id = %(tenant)s AND role <> 'admin'",
            APPLICATION,
        )
        act_as(record, "member.role", "a member")


@kind("an action of now was invented", APPLICATION, why=_OF_NOW)
def invent(record: Record, _: random.Random) -> None:
    act_as(record, "call.reveal", "a call")


@kind("an action of days ago was invented", APPLICATION, CHECK)
def invent_old(record: Record, rng: random.Random) -> None:
    record.change(
        "INSERT INTO action (tenant_id, id, at, user_name, verb, subject, details)"
        " VALUES (%(tenant)s, gen_random_uuid(), %(at)s, 'ada', 'call.reveal', 'a call', '{}')",
        APPLICATION,
        at=timezone.now() - timedelta(days=rng.uniform(0.1, 20)),
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


@kind("an erasure was declared with a forged confirmation of now", OWNER, why=_OF_NOW)
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


@kind("an entry was forged", APPLICATION, CHECK, INDEX, of="baseline")
def forge_baseline(record: Record, _: random.Random) -> None:
    forge(record, Kind.BASELINE, rows={}, versions=[], payload_days=None, ledger_keys=[])


@kind("an entry was forged", APPLICATION, CHECK, of="key")
def forge_key(record: Record, rng: random.Random) -> None:
    forge(record, Kind.KEY, public_key=to_base64(rng.randbytes(32)), by="operator", replaces=[])


@kind("an entry was forged", APPLICATION, CHECK, of="epoch")
def forge_epoch(record: Record, _: random.Random) -> None:
    forge(record, Kind.EPOCH, epoch=7, origin="x", reason="r", by="operator", previous=None)


@kind("an entry was forged", APPLICATION, of="hold that was set", why=_SAFE)
def forge_hold(record: Record, rng: random.Random) -> None:
    name = str(UUID(int=rng.getrandbits(128)))
    forge(record, Kind.HOLD, hold=name, state="set", name="forged", covers={"case_id": "x"})


@kind("an entry was forged", APPLICATION, of="hold that was released", why=_SAFE)
def forge_release(record: Record, _: random.Random) -> None:
    ((hold,),) = record.run(
        "SELECT id FROM legal_hold WHERE tenant_id = %(tenant)s AND released_at IS NULL"
    )
    forge(record, Kind.HOLD, hold=str(hold), state="released", name="x", reason="r")


@kind("a call that nobody made was stored", APPLICATION, of="of now", why=_OF_NOW)
def send_now(record: Record, _: random.Random) -> None:
    send(record, timezone.now(), make_call())


@kind("a call that nobody made was stored", APPLICATION, CHECK, of="of days ago")
def send_old(record: Record, rng: random.Random) -> None:
    at = timezone.now() - rng.uniform(1, 20) * DAY
    send(record, at, make_call(started_at=at))


@kind("a call that nobody made was stored", APPLICATION, CHECK, of="of tomorrow")
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
