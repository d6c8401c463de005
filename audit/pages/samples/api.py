"""Auditors' samples over the API, as on their pages. Texts about calls may quote payloads."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field
from tooltrail.evidence.sample.attributes import SIZE_MAX

from audit.evidence.ledger_range import NotSignedError
from audit.models import Sample
from audit.pages.samples import acts as samples
from audit.pages.samples import answers
from audit.pages.samples.forms import (
    NAME_MAX,
    REASON_MAX,
    ConclusionForm,
    DrawForm,
    SampleForm,
)
from audit.pages.show.api_query import checked as checked_query
from audit.pages.show.router import router
from audit.queries.call_query import Reader, parse
from audit.sampling import collecting, working
from audit.sampling.drawing import CannotDrawError, draw_sample
from audit.sampling.working import TEXT_MAX, CannotWorkError
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, checked
from tenants.api_reads import ListParams, newest_first, reads
from tenants.models import Role, Scope
from tenants.scope import current_tenant_id


class SampleBody(Body):
    """Of which calls, and how many. Give `size`, or the three rates."""

    name: Stripped = Field(min_length=1, max_length=NAME_MAX)
    q: str = Field("", examples=["tool:refund since:2026-10-01 until:2026-11-01"])
    """A query as in the list of calls, without values of payloads. Empty: all calls."""
    size: int | None = Field(None, ge=1, le=SIZE_MAX)
    confidence: float | None = Field(None, ge=50, lt=100, examples=[95])
    """In percent, as the next two."""
    tolerable: float | None = Field(None, gt=0, le=50, examples=[5])
    expected: float | None = Field(None, ge=0, lt=50, examples=[0])
    commitment: str = Field("", pattern="^([0-9a-f]{64})?$")
    """SHA-256 of your nonce, which you keep until the draw."""


class DrawBody(Body):
    """The nonce that was committed to."""

    nonce: str = Field("", pattern="^([0-9a-f]{64})?$")


class ConclusionBody(Body):
    """What an auditor concludes about a call."""

    conclusion: Literal["pass", "exception", "unjudged"]
    exception: Stripped = Field("", max_length=TEXT_MAX)
    """What does not conform: needed for an exception, and for nothing else."""
    note: Stripped = Field("", max_length=TEXT_MAX)


class SampleReturnBody(Body):
    """Why a sample is to be worked again."""

    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)


@reads(
    router, "/samples", answers.SamplePage, tag="samples", scope=Scope.SAMPLES, problems=("cursor",)
)
def list_samples(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the samples, the newest first, with those that were stopped."""
    stored = Sample.objects.for_tenant(current_tenant_id())
    return newest_first("samples", stored, params, answers.summary)


@reads(
    router,
    "/samples/{uuid:sample_id}",
    answers.SampleDetail,
    tag="samples",
    scope=Scope.SAMPLES,
    problems=("not_found",),
)
def read_sample(request: HttpRequest, sample_id: Path[UUID]) -> dict[str, Any]:
    """Get a sample with its draw, its calls, conclusions and sign-offs."""
    return answers.detail(_sample(sample_id))


@acts(
    router,
    "POST",
    "/samples",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    body=SampleBody,
    status=201,
    problems=("query",),
)
def start_sample(act: Act) -> dict[str, Any]:
    """Begin a sample: its definition is recorded, and the worker lists the population."""
    body = act.read(SampleBody)
    given = body.model_dump(exclude={"q"})
    form = checked(SampleForm(given | {name: _decimal(given[name]) for name in SampleForm.rates}))
    wanted = collecting.Wanted(
        name=form.cleaned_data["name"],
        query=checked_query(parse(body.q, Reader()).of_index()),
        size=form.cleaned_data["size"],
        plan=form.plan,
        commitment=form.cleaned_data["commitment"],
    )
    return answers.detail(samples.begin_sample(act.tenant, act.actor, wanted))


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/cancel",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    problems=("not_found",),
)
def cancel_sample(act: Act, sample_id: Path[UUID]) -> dict[str, Any]:
    """Stop a sample that two people have not signed. It stays on record."""
    _sample(sample_id)
    collecting.cancel_sample(act.tenant, act.actor, sample_id, timezone.now())
    return answers.detail(_sample(sample_id))


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/witness",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    problems=("not_found", "unsigned"),
)
def bring_sample_to_witnesses(act: Act, sample_id: Path[UUID]) -> dict[str, Any]:
    """Ask the ledger's witnesses to sign its newest checkpoint now."""
    sample = _sample(sample_id)
    try:
        samples.ask_witnesses(act.tenant, act.actor, sample)
    except NotSignedError as error:
        raise ProblemError("unsigned", str(error)) from error
    return answers.detail(sample)


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/draw",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    body=DrawBody,
    problems=("not_found", "conflict"),
)
def draw_the_sample(act: Act, sample_id: Path[UUID]) -> dict[str, Any]:
    """Draw the calls of a sample whose population is fixed."""
    _sample(sample_id)
    nonce = checked(DrawForm(act.read(DrawBody).model_dump())).cleaned_data["nonce"]
    try:
        draw_sample(act.tenant, act.actor, sample_id, nonce, timezone.now())
    except CannotDrawError as error:
        raise ProblemError("conflict", str(error)) from error
    return answers.detail(_sample(sample_id))


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/calls/{int:position}",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    body=ConclusionBody,
    problems=("not_found", "conflict"),
)
def conclude_sample_call(act: Act, sample_id: Path[UUID], position: Path[int]) -> dict[str, Any]:
    """Conclude about a drawn call, or change the conclusion before somebody signs."""
    sample = _sample(sample_id)
    if not any(call.position == position for call in working.sampled_calls(sample)):
        raise ProblemError("not_found", "The sample has no such call.")
    judged = checked(ConclusionForm(act.read(ConclusionBody).model_dump())).judged
    with _conflicts():
        working.conclude(act.tenant, act.actor, sample_id, position, judged, timezone.now())
    return answers.detail(_sample(sample_id))


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/sign",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    problems=("not_found", "conflict", "no_owner", "needs_person"),
)
def sign_sample(act: Act, sample_id: Path[UUID]) -> dict[str, Any]:
    """Sign all conclusions in the name of the key's owner, an auditor or admin who made the key.

    The first one prepared them, the second one, another person, reviewed them.
    """
    _sample(sample_id)
    person = act.person(Role.AUDITOR)
    with _conflicts():
        working.sign(act.tenant, person, sample_id, timezone.now())
    return answers.detail(_sample(sample_id))


@acts(
    router,
    "POST",
    "/samples/{uuid:sample_id}/return",
    answers.SampleDetail,
    scope=Scope.SAMPLES,
    tag="samples",
    body=SampleReturnBody,
    problems=("not_found", "conflict"),
)
def return_sample(act: Act, sample_id: Path[UUID]) -> dict[str, Any]:
    """Return a sample that one person signed, to be worked again."""
    _sample(sample_id)
    reason = act.read(SampleReturnBody).reason
    with _conflicts():
        working.return_sample(act.tenant, act.actor, sample_id, reason)
    return answers.detail(_sample(sample_id))


@contextmanager
def _conflicts() -> Iterator[None]:
    """Answer 409 for an act that the sample's state does not allow."""
    try:
        yield
    except CannotWorkError as error:
        raise ProblemError("conflict", str(error)) from error


def _decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


def _sample(pk: UUID) -> Sample:
    sample = collecting.find_sample(pk)
    if sample is None:
        raise ProblemError("not_found", "Sample not found.")
    return sample
