"""Evidence bundles over the API. docs/evidence.md describes their contents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from ninja import Query, Router
from pydantic import Field

from audit.evidence.bundling import Wanted, bundle, file_name
from audit.evidence.ledger_range import NotSignedError, ledger_range_of
from audit.evidence.parameters import read_previous, report_named
from audit.incidents.bundled import evidence_of as incident_evidence
from audit.incidents.making import find_incident
from audit.pages.show.ranges import RangeParams
from audit.pages.show.sample_evidence import evidence_of
from audit.queries.time_range import TimeRange
from audit.sampling.collecting import find_sample
from config.http.problems import ProblemError, problem_responses
from config.http.streams import stream
from tenants.actions import record_view
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.keys import ApiKeyIdentity, actor_of
from tenants.models import ApiKey, Scope, Tenant
from tenants.scope import tenant_scope

router = Router()
_ANSWER = {
    "responses": {
        200: {
            "description": "OK",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        }
    }
}
_PROBLEMS = (
    "missing_key",
    "unknown_key",
    "missing_scope",
    "method_not_allowed",
    "overloaded",
    "unavailable",
    "parameter",
    "range",
    "not_found",
    "unsigned",
)


class EvidenceParams(RangeParams):
    """Which time range, which report, which sample, or which incident."""

    report: str = Field("", examples=["01a20108-bf2d-737e-8cda-6686052dfb51"])
    """Instead of a range: a stored report. Its range is used, and the report is included."""
    sample: str = Field("", examples=["01a20108-bf2d-737e-8cda-6686052dfb51"])
    """Instead of a range: a drawn sample. The bundle has its population, draw and conclusions."""
    incident: str = Field("", examples=["01a20108-bf2d-737e-8cda-6686052dfb51"])
    """Instead of a range: an incident. Its traces' time is used, and the timeline is included."""
    previous: str = Field("", max_length=500, examples=["1200,3400"])
    """Sizes of checkpoints you have kept: the bundle proves that the ledger only grew since."""


@router.get(
    "/evidence",
    auth=ApiKeyAuth(Scope.PAYLOADS),
    operation_id="download_evidence",
    summary="Download evidence",
    tags=["ledger"],
    openapi_extra={"responses": problem_responses(_PROBLEMS)["responses"] | _ANSWER["responses"]},
)
def download_evidence(request: HttpRequest, params: Query[EvidenceParams]) -> HttpResponseBase:
    """Download an evidence bundle: the raw events of a range and the proofs to verify them offline.

    The response is a streamed zip. `tooltrail verify` checks it. The download is recorded in the
    audit log.
    """
    known = {field.alias or name for name, field in EvidenceParams.model_fields.items()}
    if unknown := sorted(request.GET.keys() - known):
        raise ProblemError(
            "parameter",
            f"Unknown parameter {unknown[0]!r}. Available parameters: {', '.join(sorted(known))}.",
            parameter=unknown[0],
        )
    identity, now = cast(ApiRequest, request).auth, timezone.now()
    with tenant_scope(identity.tenant_id):
        if params.sample:
            return _of_sample(identity, params.sample, now)
        if params.incident:
            return _of_incident(identity, params.incident, now)
        report = None
        if params.report:
            report = report_named(params.report)
            if report is None:
                raise ProblemError("not_found", "Report not found.")
            of = TimeRange(report.of.start, report.of.end, UTC)
        else:
            of = params.read_range()
        try:
            with _is_signed():
                previous, ledger_range = read_previous(params.previous), ledger_range_of(of)
        except ValueError as error:
            raise ProblemError("parameter", str(error), parameter="previous") from error
        tenant = Tenant.objects.get(pk=identity.tenant_id)
        key = ApiKey.objects.filter(tenant_id=tenant.pk, key_id=identity.key_id).first()
        made_by = key.name if key else identity.key_id
        wanted = Wanted(
            tenant=tenant,
            ledger_range=ledger_range,
            of=of,
            made_by=made_by,
            now=now,
            report=report,
            previous=previous,
        )
        record_view(
            tenant.pk,
            actor_of(identity),
            "evidence.export",
            apart=request.GET.urlencode(),
            **wanted.on_record(),
        )
        name = file_name(tenant, of)
        return stream(tenant.pk, bundle(wanted), "application/zip", file_name=name)


def _of_sample(identity: ApiKeyIdentity, sample_id: str, now: datetime) -> HttpResponseBase:
    sample = _named(sample_id, find_sample, "Sample")
    tenant, actor = Tenant.objects.get(pk=identity.tenant_id), actor_of(identity)
    with _is_signed():
        wanted = evidence_of(tenant, sample, actor, now)
    pk = str(sample.id)
    record_view(tenant.pk, actor, "evidence.export", f"sample {pk}", sample=pk)
    name = f"sample-{tenant.slug}-{pk}.zip"
    return stream(tenant.pk, bundle(wanted), "application/zip", file_name=name)


def _of_incident(identity: ApiKeyIdentity, incident_id: str, now: datetime) -> HttpResponseBase:
    incident = _named(incident_id, find_incident, "Incident")
    tenant, actor = Tenant.objects.get(pk=identity.tenant_id), actor_of(identity)
    with _is_signed():
        wanted = incident_evidence(tenant, incident, actor, now)
    pk = str(incident.id)
    record_view(tenant.pk, actor, "evidence.export", apart=pk, incident=pk, **wanted.on_record())
    name = f"incident-{tenant.slug}-{pk}.zip"
    return stream(tenant.pk, bundle(wanted), "application/zip", file_name=name)


def _named[T](pk: str, find: Callable[[UUID], T | None], what: str) -> T:
    try:
        one = find(UUID(pk))
    except ValueError:
        one = None
    if one is None:
        raise ProblemError("not_found", f"{what} not found.")
    return one


@contextmanager
def _is_signed() -> Iterator[None]:
    """Answer with a problem where the ledger has no signature yet."""
    try:
        yield
    except NotSignedError as error:
        raise ProblemError("unsigned", str(error)) from error
