"""Records for whoever pulls them: a stream whose cursor the reader keeps."""

from typing import Any, Literal

import msgspec
from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from audit.ledger.proofs import newest_checkpoint
from audit.pages.show.router import router
from audit.stream.reading import batches_from
from audit.stream.records import Record, RecordMaker
from config.boxes import BoxError
from config.http.problems import ProblemError
from tenants.api_reads import Answer, Params, reads
from tenants.models import Tenant
from tenants.scope import current_tenant_id

LIMIT_MAX = 5_000


class StreamParams(Params):
    """Which records."""

    after: int = Field(-1, ge=-1, le=2**62)
    """The ledger index of the last record that was read: `after` of the previous answer."""
    of: Literal["calls", "actions"] = "calls"
    """What executors sent (`calls`), or what the server itself recorded (`actions`)."""
    format: Literal["ocsf", "ecs"] = "ocsf"
    """The form of a record: OCSF, or the members of ECS."""
    proofs: bool = True
    """Whether each record has its whole proof, or only names the checkpoint."""
    limit: int = Field(1_000, ge=1, le=LIMIT_MAX)
    """Maximum number of records."""


class StreamPage(Answer):
    """Records in the order of the ledger, without payloads."""

    records: list[dict[str, Any]]
    """Each as `/schemas/stream-ocsf-1.json` or `/schemas/stream-ecs-1.json` of the server says."""
    after: int
    """What to ask for next. It may be larger than the last record's index."""
    has_more: bool
    """Whether more signed records are there now. If not, ask again in some seconds."""
    signed: int
    """Entries of the ledger that are signed; only these are given out."""


@reads(router, "/stream", StreamPage, tag="streams", problems=("conflict",))
def pull_records(request: HttpRequest, params: Query[StreamParams]) -> dict[str, Any]:
    """Get the next records of the ledger, each with its proof: as streams send them to a SIEM.

    Keep `after` with the records, in one transaction if you can: then none is lost or read twice.
    """
    tenant_id, checkpoint = current_tenant_id(), newest_checkpoint()
    if checkpoint is None:
        return {"records": [], "after": params.after, "has_more": False, "signed": 0}
    begin, end = params.after + 1, checkpoint.size
    try:
        maker = RecordMaker(
            Tenant.objects.get(pk=tenant_id),
            params.of,
            params.format,
            checkpoint,
            has_proofs=params.proofs,
        )
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error
    records: list[Record] = []
    while begin < end and len(records) < params.limit:
        batches = batches_from(tenant_id, params.of, begin, end)
        if not batches:
            begin = end
            break
        wanted = params.limit - len(records)
        some = maker.records(batches, begin, wanted)
        records += some
        begin = min(end, batches[-1].first_index + batches[-1].event_count)
        if len(some) == wanted:
            begin = some[-1].index + 1
    return {
        "records": [msgspec.Raw(one.body) for one in records],
        "after": max(begin - 1, params.after),
        "has_more": begin < end,
        "signed": end,
    }
