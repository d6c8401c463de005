"""Records of streams in tests: a log with everything in it, made into records and verified."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.conf import settings
from django.utils import timezone
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema
from tooltrail.evidence.record import MEMBER, RecordKeys, RecordVerdict, verify_record

from audit.ledger.proofs import newest_checkpoint
from audit.ledger.statements import key_set
from audit.models import Stream, StreamFormat, StreamOf, StreamWay
from audit.stream.reading import batches_from
from audit.stream.records import Record, RecordMaker
from audit.stream.sending import due_streams, run_slice
from audit.stream.streams import Wanted, create_stream
from config import env
from tenants.models import new_id
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.siem_receivers import certificate

ROOT = Path(__file__).resolve().parents[2]


def make_records(
    cast: Cast, of: str, form: str = "ocsf", *, begin: int = 0, **options: bool
) -> list[Record]:
    """All records that the newest checkpoint covers, from an index on."""
    made: list[Record] = []
    with tenant_scope(cast.tenant.id):
        checkpoint = newest_checkpoint()
        assert checkpoint is not None, "sign first"
        maker = RecordMaker(cast.tenant, of, form, checkpoint, **options)
        while begin < checkpoint.size:
            batches = batches_from(cast.tenant.id, of, begin, checkpoint.size)
            if not batches:
                break
            made += maker.records(batches, begin)
            begin = batches[-1].first_index + batches[-1].event_count
    return made


def documents(records: list[Record]) -> list[dict[str, Any]]:
    """The records as JSON values."""
    return [json.loads(record.body) for record in records]


def keys_of(cast: Cast) -> RecordKeys:
    """The keys that somebody kept of the tenant's ledger."""
    with tenant_scope(cast.tenant.id):
        return RecordKeys.parse(json.dumps({"keys": key_set()}).encode())


def verdict_of(record: dict[str, Any], keys: RecordKeys) -> RecordVerdict:
    """What `tooltrail verify-record` says of a record that has its proof."""
    return verify_record(record, keys)


@cache
def published(form: str) -> jsonschema_rs.Validator:
    """The validator of the published schema of a format."""
    file = ROOT / "docs" / "schemas" / f"stream-{form}-1.json"
    return jsonschema_rs.validator_for(json.loads(file.read_text()), validate_formats=True)


@cache
def ocsf_class() -> jsonschema_rs.Validator:
    """The validator of OCSF's own schema: API Activity with the profile that records name."""
    schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version="1.8.0"))
    return jsonschema_rs.validator_for(schema.get_class_schema("api_activity", ["ai_operation"]))


def assert_valid(form: str, record: dict[str, Any]) -> None:
    """Fail unless a record is what the schemas say."""
    published(form).validate(record)
    if form == "ocsf":
        ocsf_class().validate({name: each for name, each in record.items() if name != MEMBER})


def make_stream(
    cast: Cast,
    way: StreamWay,
    *,
    of: StreamOf = StreamOf.CALLS,
    form: StreamFormat = StreamFormat.OCSF,
    begin: int = 0,
    name: str = "",
    **given: Any,
) -> Stream:
    """A stream that trusts the receivers of this session, from the begin of the ledger."""
    wanted = Wanted(name or f"{way} {new_id()}", of, form, way, {"ca": certificate().pem, **given})
    with tenant_scope(cast.tenant.id):
        return create_stream(cast.tenant, cast.admin, wanted, from_index=begin)


def read_stream(cast: Cast, stream: Stream) -> Stream:
    """The stream as it is stored now."""
    with tenant_scope(cast.tenant.id):
        return Stream.objects.for_tenant(cast.tenant.id).get(id=stream.id)


def send(cast: Cast, *, seconds: float = 60.0) -> None:
    """Do what the worker does for a tenant's streams, until nothing is due."""
    for _ in range(20):
        with tenant_scope(cast.tenant.id):
            due = due_streams(cast.tenant.id, timezone.now())
        if not due or not run_slice([(cast.tenant.id, pk) for pk in due], seconds=seconds):
            return


def let_time_pass(cast: Cast) -> None:
    """Let the time pass after which a stream is tried again, or is taken from a killed worker."""
    with tenant_scope(cast.tenant.id):
        Stream.objects.for_tenant(cast.tenant.id).update(
            next_attempt_at=timezone.now(), claim=None, claimed_until=None
        )


def allow(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """What the operator allows, for this process and those that it starts."""
    monkeypatch.setenv("TOOLTRAIL_STREAM_ALLOW", " ".join(addresses))
    monkeypatch.setattr(settings, "STREAM_ALLOW", env.openings("TOOLTRAIL_STREAM_ALLOW"))
