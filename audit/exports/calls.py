"""The calls that match a query as a file: NDJSON, CSV or Parquet, streamed.

Each chunk is read by key in its own short transaction. So memory does not grow with the number of
calls, and no transaction stays open for a slow reader. All forms end with the number of calls:
without it, a file was cut off.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from importlib.util import find_spec
from uuid import UUID

from audit.exports.call_document import EXPORTED, document
from audit.exports.forms import Document, Form, text_forms
from audit.queries.call_filter import CallFilter
from audit.queries.call_list import call_chunk, violations_of
from audit.queries.costs import costs_of_calls
from audit.queries.cursor import NEWEST, Cursor
from audit.queries.price_lists import plain
from audit.queries.withheld import without_messages
from tenants.scope import tenant_scope

CHUNK = 1_000
"""Calls read and written at once."""


def chunks(
    tenant_id: UUID, wanted: CallFilter, now: datetime, *, with_messages: bool
) -> Iterator[list[Document]]:
    """All calls that match, newest first, as documents. One scope for each chunk.

    Unless `with_messages`, every `error_message` is null, as messages quote payloads.
    """
    cursor: Cursor[UUID] | None = NEWEST
    while cursor is not None:
        with tenant_scope(tenant_id):
            calls, cursor = call_chunk(wanted, now=now, before=cursor, size=CHUNK)
            violations = violations_of(calls)
            currency, costs = costs_of_calls(calls)
        if not with_messages:
            calls = without_messages(calls)
        if calls:
            yield [
                document(call, violations.get(call.invocation_id))
                | _cost(currency, costs.get((call.started_on, call.invocation_id)))
                for call in calls
            ]


def _cost(currency: str, cost: Decimal | None) -> Document:
    if cost is None:
        return {"cost": None, "currency": None}
    return {"cost": plain(cost), "currency": currency}


FORMS = text_forms(EXPORTED)
"""The forms of the file, by file extension."""


def _parquet(written: Iterator[list[Document]]) -> Iterator[bytes]:
    from audit.exports.parquet import parquet  # pyarrow takes 38 MB of memory

    return parquet(written)


if find_spec("pyarrow") is not None:  # the extra `parquet`
    FORMS["parquet"] = Form(_parquet, "application/vnd.apache.parquet")
