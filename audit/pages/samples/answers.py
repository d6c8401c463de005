"""Answers of the API about auditors' samples."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from audit.models import Sample, SampledCall
from audit.sampling import working
from audit.sampling.drawing import seeding_of
from tenants.api_reads import Answer, Page, utc

type _State = Literal[
    "waiting", "running", "fixed", "drawn", "prepared", "signed", "cancelled", "failed"
]


class SampleSummary(Answer):
    """A sample of calls."""

    id: UUID
    name: str
    query: str
    """Of the population; empty: all calls."""
    state: _State
    created_at: datetime
    created_by: str
    population: int
    """Its calls listed so far."""
    size: int | None
    """Calls to draw; null before the population is fixed."""
    problem: str
    """Why it failed; else empty."""


class SamplePage(Page[SampleSummary]):
    """Samples, the newest first."""


class DrawnCall(Answer):
    """A drawn call and the conclusion about it."""

    position: int
    """In the order of the draw, from 1."""
    ledger_index: int
    """Of the call's first entry."""
    invocation_id: UUID
    conclusion: Literal["", "pass", "exception", "unjudged"]
    exception: str
    """What does not conform."""
    note: str
    is_erased: bool
    """Whether the call was erased, and with it the texts."""
    concluded_at: datetime | None
    concluded_by: str


class SampleResult(Answer):
    """What the conclusions so far say of the population."""

    open: int
    """Calls without a conclusion."""
    errors: int
    """Exceptions, and calls that cannot be judged."""
    upper_limit: int
    """With the confidence, the population has no more errors."""
    confidence: float
    """In percent."""
    is_tolerable: bool | None
    """Whether the upper limit is below the tolerable rate; null: there is no such rate."""


class SampleSignature(Answer):
    """Who signed the conclusions."""

    part: Literal["prepared", "reviewed"]
    by: str
    at: datetime


class SampleDetail(SampleSummary):
    """A sample with its draw, its calls and its sign-offs."""

    commitment: str
    """SHA-256 of the auditor's nonce; empty: there is none."""
    population_sha256: str
    """Empty before the population is fixed."""
    ledger_size: int | None
    """Calls whose first entry is behind it are not in the population."""
    checkpoint_size: int | None
    """Of the checkpoint in the seed; before the draw, of the one that would be. Null: none yet."""
    checkpoint_root: str
    nonce: str
    seed: str
    steerable_because: list[str]
    """Why the server's operator could have steered the draw. Empty: nothing is known."""
    calls: list[DrawnCall]
    result: SampleResult | None
    signatures: list[SampleSignature]


def summary(one: Sample) -> dict[str, Any]:
    """A sample as `SampleSummary` has it."""
    named = ("id", "name", "query", "state", "created_by", "size", "problem")
    return {
        **{name: getattr(one, name) for name in named},
        "created_at": utc(one.created_at),
        "population": one.found_count,
    }


def detail(one: Sample) -> dict[str, Any]:
    """A sample as `SampleDetail` has it."""
    calls = working.sampled_calls(one)
    seeding = seeding_of(one) if one.fixed_at else None
    checkpoint = None if seeding is None else seeding.checkpoint
    size, root = one.checkpoint_size, one.checkpoint_root
    if one.drawn_at is None and checkpoint is not None:
        size, root = checkpoint.size, bytes(checkpoint.root).hex()
    signed = (
        ("prepared", one.prepared_by, one.prepared_at),
        ("reviewed", one.reviewed_by, one.reviewed_at),
    )
    return {
        **summary(one),
        "commitment": one.commitment,
        "population_sha256": one.population,
        "ledger_size": one.ledger_size,
        "checkpoint_size": size,
        "checkpoint_root": root,
        "nonce": one.nonce,
        "seed": one.seed,
        "steerable_because": seeding.why_steerable(one) if seeding else [],
        "calls": [_call(call) for call in calls],
        "result": _result(one, calls) if calls else None,
        "signatures": [
            {"part": part, "by": by, "at": utc(at)} for part, by, at in signed if at is not None
        ],
    }


def _call(call: SampledCall) -> dict[str, Any]:
    named = ("position", "ledger_index", "invocation_id", "conclusion", "exception", "note")
    return {
        **{name: getattr(call, name) for name in named},
        "is_erased": call.is_erased,
        "concluded_at": call.concluded_at and utc(call.concluded_at),
        "concluded_by": call.concluded_by,
    }


def _result(one: Sample, calls: list[SampledCall]) -> dict[str, Any]:
    projection = working.projection_of(one, calls)
    return {
        "open": projection.open,
        "errors": projection.errors,
        "upper_limit": projection.limit,
        "confidence": projection.confidence / 100,
        "is_tolerable": projection.is_tolerable,
    }
