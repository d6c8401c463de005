"""Rows changed, deleted and inserted by SQL, for every table: derived from models and schema.

A model says which columns the ledger proves (`in_ledger`), and the index which tables are made of
the log (`KEYS`). So a new proved model, index table or column has its kinds at once. A new table of
another sort must be given a reason in `NOT_PROVED` (`unnamed`).
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from audit.index.shadow import KEYS
from tenants.row_digests import ledger_id, proved_models
from tests.support.tampering.finders import Finder
from tests.support.tampering.grants import changer, columns_of, deleter, inserter, tables, writable
from tests.support.tampering.kinds import Tampering
from tests.support.tampering.record import Record
from tests.support.tampering.values import change_row, delete_row, insert_row
from tools_registry.models import JSONTextField, Tool

BUNDLE, CHECK, INDEX = Finder.BUNDLE, Finder.CHECK, Finder.INDEX

_EXEMPT = {
    "definition_change": ("digest = ''", "", ""),
    "tool": ("latest_number = 0", "owner", "a name without a version is no registration"),
    "tool_change": ("attempted_on IS NOT NULL", "reason", "a refused registration changed nothing"),
}
"""Rows that no entry names (`ledger_exempt`), a column, and why. The first has none here."""
_NOT_IN_BUNDLES: Mapping[str, frozenset[str]] = {
    "report": frozenset({"time_zone", "period"}),
    "tool": frozenset({"name"}) ^ frozenset(Tool.in_ledger),
    "tool_version": frozenset({"meta"}),
}
"""Of tables whose rows are in bundles: the proved columns that are not."""
_UNIQUE: Mapping[str, Mapping[str, str]] = {
    "alert": {"occasion": "%(word)s"},
    "alert_rule": {"name": "%(word)s"},
    "alert_channel": {"name": "%(word)s"},
    "api_key": {"key_id": "left(%(word)s, 16)"},
    "audit_sample": {},
    "audit_sample_call": {"position": "position + %(number)s"},
    "definition": {"digest": "'sha256:' || %(word)s"},
    "definition_change": {"server": "%(word)s"},
    "directory_group": {},
    "directory_user": {"user_name": "%(word)s", "external_id": "%(word)s"},
    "erasure": {},
    "floor_request": {},
    "incident": {},
    "invitation": {},
    "legal_hold": {},
    "maintenance_window": {"name": "%(word)s"},
    "note": {},
    "share_link": {},
    "stream": {"name": "%(word)s"},
    "membership": {
        "user_id": "(SELECT max(id) FROM app_user u"
        " WHERE u.id NOT IN (SELECT m.user_id FROM membership m))"
    },
    "polling_tool": {"tool_name": "%(word)s"},
    "price_list": {"holds_from": "holds_from + %(number)s"},
    "report": {"period": "NULL"},
    "served_definition": {"server": "%(word)s"},
    "tool": {"name": "%(word)s"},
    "tool_change": {"ordinal": "ordinal + 1000"},
    "tool_draft": {
        "tool_id": "(SELECT min(t.id::text)::uuid FROM tool t"
        " WHERE t.tenant_id = tool_draft.tenant_id AND t.id <> tool_draft.tool_id)"
    },
    "tool_version": {"number": "number + 1000", "digest": "'sha256:' || %(word)s"},
}
"""What a copy of a row must have otherwise. Of the other tables a tenant has one row."""
_UNPROVED = {
    "alert": "when it ended, and how often it fired again without an alert",
    "alert_rule": "how far it was judged",
    "archive": "how far it is, and why it failed",
    "audit_sample": "the progress of a job",
    "definition_change": "the index of its entry",
    "api_key": "when it was last used; the action says who made it",
    "directory_group": "when it changed",
    "directory_user": "when it changed",
    "erasure": "the progress of a job",
    "incident": "the progress of a job; the action has the digests of the timeline",
    "invitation": "the action says who made it",
    "price_list": "which prices figures use until units are counted",
    "served_definition": "when it was seen",
    "share_link": "how often it was opened; openings are actions",
    "stream": "how far it was sent; receivers see the indexes",
    "tenant": "when it was made",
    "tenant_setting": "how far retention has come",
    "tool": "a counter",
    "tool_change": "what a refused registration contained",
}
"""What the other columns of a proved table are."""
_KEY = {
    "invocation_id": "gen_random_uuid()",
    "decision_id": "gen_random_uuid()",
    "kind": "gen_random_uuid()",
    "trace_id": "%(word)s",
    "tool_name": "%(word)s",
    "producer_id": "%(word)s",
    "ordinal": "ordinal + %(number)s",
    "to_seq": "to_seq + %(number)s",
}
"""Other values for what names a row of the index."""
_MAY_BE_ERASED = "an erased event may have said so"
INDEX_CHANGED: Mapping[str, Mapping[str, str]] = {
    "producer": {"last_seq": _MAY_BE_ERASED, "last_heard_at": _MAY_BE_ERASED}
}
"""Columns of the index that are not compared once an event was erased."""
_INSERTED_UNSEEN: Mapping[str, Mapping[str, str]] = {
    "gap": {},
    "producer": {"event_count": "1"},
}
"""Likewise: rows that nobody finds, and what they say then."""
_ERASED = (
    "invocation_id IN (SELECT invocation_id FROM erasure_call e WHERE e.tenant_id = %(tenant)s)"
    " OR tool_name = 'old'"
)
"""Calls whose payloads are gone."""
_COUNTED = frozenset(
    {"tool_name", "tool_version", "duration_us", "prompt_tokens", "completion_tokens"}
)
"""Columns of a call that rollups sum up."""
_LABELS = frozenset(
    {
        "agent",
        "case_id",
        "document_id",
        "model",
        "turn_id",
        "parent_invocation_id",
        "error_code",
        "tool_call_id",
    }
)

NOT_PROVED = {
    "alert_delivery": "how messages were sent; the actions say which were delivered",
    "alert_trial": "the result of a job: try the rule again",
    "argument_comparison": "the result of a job: run it again",
    "app_user": "accounts belong to no tenant",
    "archive_segment": "a list of what is archived; each segment is an action",
    "audit_sample_part": "the digest of a population is on record: a draw and a bundle compare it",
    "board": "a page of what the record says",
    "call_units": "how many units calls took; the worker counts them again for a new list",
    "definition_server": "when a server was seen, and counters",
    "key_quota": "how much a key may still send; the events are in the log",
    "ledger_check": "a check's result proves nothing: run the check again",
    "llm_usage": "the tokens of models' answers, which are no calls and in no log",
    "mcp_use": "counts of the last minute; the action that the worker makes of them is proved",
    "observed_tool": "derived from the index; the worker makes it again",
    "otlp_span": "how spans were joined to calls; the calls are compared",
    "payload_search": "a person's search, deleted after a day",
    "payload_search_hit": "a person's search, deleted after a day",
    "rejected_event": "rejected events are in no ledger",
    "page_choice": "how pages look for one person",
    "saved_view": "a person's view, which they may share",
    "tool_drift": "the result of a job: run it again",
    "tool_import": "a job, deleted after a day",
    "tool_import_tool": "a job, deleted after a day",
    "tool_regression": "what CI judges changes by; the actions say of which calls it was made",
    "tool_regression_case": "what CI judges changes by: make the set of the calls again",
    "tool_replay": "the result of a job: run it again",
    "unit_path": "how far units are counted",
    "witness_answer": "a signature proves itself; that a witness refused, only the server says",
}
"""Tables that no entry proves, and why."""
_ELSEWHERE = {
    *("action", "batch", "ledger_checkpoint", "ledger_erasure", "ledger_head", "ledger_key"),
    *("ledger_signer", "ledger_tile", "erasure_call"),
    # Part of no record:
    *("app_user_groups", "app_user_user_permissions"),
    *("server_process", "skipped_span", "sign_in_failure", "tolerated_migration", "tombstone"),
    *("account_emailaddress", "account_emailconfirmation", "cache_entry", "installation_provider"),
    *("mfa_authenticator", "usersessions_usersession"),  # of an account, in whatever tenants
    *("socialaccount_socialaccount", "socialaccount_socialapp", "socialaccount_socialtoken"),
}
"""Tables with kinds of their own in other modules, and those that are part of no record."""


def kinds() -> Iterator[Tampering]:
    """All families."""
    for model in proved_models():
        yield from _proved(model)
    for table in KEYS:
        yield from _indexed(table)
    for columns, finders, why in (
        (_COUNTED, (INDEX,), "by the sums of its hour"),
        (_LABELS, (), "its events are gone, so the log does not say it any more"),
    ):
        what = "a column of an erased call was changed"
        listed = ", ".join(sorted(columns))
        yield _changed(what, "invocation", columns, *finders, where=_ERASED, why=why, of=listed)
    what, listed = "the list of an erasure's calls", "erasure_call"
    others = {"invocation_id": "gen_random_uuid()"}
    yield _changed(f"{what} was changed", listed, columns_of(listed), CHECK)
    yield _deleted(f"{what} lost some", listed, CHECK)
    yield _inserted(f"{what} has one more", listed, others, CHECK)
    for table, why in NOT_PROVED.items():
        # The application can change only together what became of a rejected event.
        columns = columns_of(table) - (writable(table) if table == "rejected_event" else set())
        yield _changed("a row that no entry proves was changed", table, columns, why=why)


def unnamed() -> frozenset[str]:
    """Tables that no kind is about."""
    proved = {model._meta.db_table for model in proved_models()}
    return tables() - proved - KEYS.keys() - NOT_PROVED.keys() - _ELSEWHERE


def _proved(model: Any) -> Iterator[Tampering]:
    table, proved = model._meta.db_table, frozenset(model.in_ledger)
    exempt, column, why = _EXEMPT.get(table, ("false", "", ""))
    there = f"NOT ({exempt})"
    documents = (
        frozenset(each.attname for each in model._meta.fields if isinstance(each, JSONTextField))
        & proved
    )
    shown = proved - _NOT_IN_BUNDLES.get(table, proved)
    what = "a proved row was changed"
    also = (INDEX,) if table == "tenant_setting" else ()  # it says which days have expired
    if columns := proved - shown:
        yield _changed(what, table, columns, CHECK, *also, where=there, documents=documents)
    if shown:
        of = f"{table} (what is in bundles)"
        finders = (CHECK, BUNDLE)
        yield _changed(what, table, shown, *finders, where=there, documents=documents, of=of)
    if column:
        what = "a row that no entry needs to prove was changed"
        yield _changed(what, table, frozenset({column}), where=exempt, why=why)
    if unseen := documents - shown:
        yield _changed("a document was made unreadable", table, unseen, CHECK, where=there)
    in_bundle = (BUNDLE,) if table in ("tool", "tool_version") else ()
    if table != "tenant":
        yield _deleted("a proved row was deleted", table, CHECK, *also, *in_bundle, where=there)
    if table in _UNIQUE:
        in_bundle = (BUNDLE,) if table == "tool_version" else ()
        others = _UNIQUE[table] or {"id": "gen_random_uuid()"}
        if "id" in columns_of(table):
            others = {"id": "gen_random_uuid()", **others}
        yield _inserted("a proved row was inserted", table, others, CHECK, *in_bundle, where=there)
    ids = {"tenant_id", *ledger_id(model)}
    if columns := columns_of(table) - proved - ids:
        what = "another column of a proved row was changed"
        yield _changed(what, table, columns, why=_UNPROVED[table])


def _indexed(table: str) -> Iterator[Tampering]:
    key = KEYS[table]
    columns = columns_of(table) - {*key, "started_at", "started_on"}
    there = f"NOT ({_ERASED})" if table in ("invocation", "violation", "decision") else "true"
    others = {column: _KEY[column] for column in key if column in _KEY}
    what, changed = "a row of the index was", INDEX_CHANGED.get(table, {})
    for column, why in changed.items():
        names = frozenset({column})
        of = f"{table}.{column}"
        # Without any value it would say less than the events that can be read, which is found.
        yield _changed(f"{what} changed", table, names, why=why, of=of, empties=False)
    yield _changed(f"{what} changed", table, columns - changed.keys(), INDEX, where=there)
    yield _deleted(f"{what} deleted", table, INDEX, where=there)
    if table in _INSERTED_UNSEEN:
        yield _inserted(
            f"{what} inserted", table, {**others, **_INSERTED_UNSEEN[table]}, why=_MAY_BE_ERASED
        )
    else:
        yield _inserted(f"{what} inserted", table, others, INDEX, where=there)


def _changed(
    what: str,
    table: str,
    columns: frozenset[str],
    *finders: Finder,
    where: str = "true",
    documents: frozenset[str] = frozenset(),
    why: str = "",
    of: str = "",
    empties: bool = True,
) -> Tampering:
    power, within = changer(table, columns - {"tenant_id"})

    def act(record: Record, rng: random.Random) -> None:
        change_row(
            record, rng, table, within, power, where=where, documents=documents, empties=empties
        )

    return Tampering(what, of or table, power, frozenset(finders), act, why)


def _deleted(
    what: str, table: str, *finders: Finder, where: str = "true", why: str = ""
) -> Tampering:
    power = deleter(table)

    def act(record: Record, rng: random.Random) -> None:
        delete_row(record, rng, table, power, where=where)

    return Tampering(what, table, power, frozenset(finders), act, why)


def _inserted(
    what: str,
    table: str,
    others: Mapping[str, str],
    *finders: Finder,
    where: str = "true",
    why: str = "",
) -> Tampering:
    power = inserter(table)

    def act(record: Record, rng: random.Random) -> None:
        insert_row(record, rng, table, others, power, where=where)

    return Tampering(what, table, power, frozenset(finders), act, why)
