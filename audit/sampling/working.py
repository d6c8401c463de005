"""Conclusions about the calls of a sample, and the sign-offs of two people. Needs the scope.

A conclusion can be changed until somebody signs. Whoever reviews signs the same conclusions, or
returns the sample: then it is worked and signed again. Each step is an action. Texts stay out of
the ledger, which cannot forget: it has their digests.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tooltrail.evidence.sample.acts import CONCLUDED, RETURNED, SIGNED
from tooltrail.evidence.sample.attributes import WHOLE, upper_limit
from tooltrail.evidence.sample.layout import ERRORS, conclusions_digest, texts_digest

from audit.models import Conclusion, Sample, SampledCall, SampleState
from audit.sampling.collecting import find_sample
from tenants.actions import Actor, Person, name_of, record_action
from tenants.models import Tenant

TEXT_MAX = 4_000
CONFIDENCE = 9_500
"""Of the upper limit of a sample whose size is a plain number."""


class CannotWorkError(Exception):
    """Nothing was changed. The message says why."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What an auditor concludes about a call."""

    conclusion: Conclusion
    note: str
    exception: str
    """What does not conform; needed for an exception, and empty otherwise."""


@dataclass(frozen=True, slots=True)
class Projection:
    """What the conclusions say of the population."""

    population: int
    size: int
    open: int
    """Calls without a conclusion."""
    exceptions: int
    unjudged: int
    confidence: int
    """In hundredths of a percent."""
    tolerable: int | None

    @property
    def errors(self) -> int:
        """Exceptions, and calls that cannot be judged."""
        return self.exceptions + self.unjudged

    @property
    def rate(self) -> float:
        """The rate of errors in the sample, which is the likely one of the population; 0 to 1."""
        return self.errors / self.size if self.size else 0.0

    @property
    def limit(self) -> int:
        """With the confidence the population has at most so many errors."""
        return upper_limit(self.confidence, self.errors, self.size, self.population)

    @property
    def is_tolerable(self) -> bool | None:
        """Whether the upper limit is below the tolerable rate; None: there is no such rate."""
        if self.tolerable is None:
            return None
        return self.limit * WHOLE < self.tolerable * self.population


def sampled_calls(sample: Sample) -> list[SampledCall]:
    """The drawn calls, in the order of the draw. One query."""
    calls = SampledCall.objects.for_tenant(sample.tenant_id).filter(sample_id=sample.id)
    return list(calls.order_by("position"))


def projection_of(sample: Sample, calls: list[SampledCall]) -> Projection:
    """What the conclusions so far say of the population."""
    conclusions = [call.conclusion for call in calls]
    return Projection(
        population=sample.call_count or 0,
        size=len(calls),
        open=conclusions.count(""),
        exceptions=conclusions.count(Conclusion.EXCEPTION),
        unjudged=conclusions.count(Conclusion.UNJUDGED),
        confidence=sample.confidence or CONFIDENCE,
        tolerable=sample.tolerable,
    )


def conclude(
    tenant: Tenant, actor: Actor, pk: UUID, position: int, judged: Judged, now: datetime
) -> None:
    """Conclude about a drawn call, or change the conclusion. Raises CannotWorkError."""
    sample = _locked(pk, SampleState.DRAWN, "Conclusions are changed before somebody signs.")
    calls = SampledCall.objects.for_tenant(tenant.pk).filter(sample_id=pk, position=position)
    call = calls.first()
    if call is None:
        raise CannotWorkError("The sample has no such call.")
    if judged.conclusion == Conclusion.EXCEPTION and not judged.exception:
        raise CannotWorkError("Describe the exception.")
    if judged.conclusion != Conclusion.EXCEPTION and judged.exception:
        raise CannotWorkError("Only an exception has a description of one.")
    salt = secrets.token_hex(16)
    texts = texts_digest(judged.note, judged.exception, salt)
    calls.update(
        conclusion=judged.conclusion,
        note=judged.note,
        exception=judged.exception,
        salt=salt,
        texts=texts,
        concluded_at=now,
        concluded_by=name_of(actor),
    )
    record_action(
        tenant,
        actor,
        CONCLUDED,
        str(sample.id),
        rows=[call],
        index=call.ledger_index,
        conclusion=judged.conclusion.value,
        texts=texts,
    )


def sign(tenant: Tenant, person: Person, pk: UUID, now: datetime) -> Sample:
    """Sign all conclusions: as who prepared them, or then as another person who reviewed them.

    Raises CannotWorkError.
    """
    sample = find_sample(pk, for_update=True)
    if sample is None or sample.state not in (SampleState.DRAWN, SampleState.PREPARED):
        raise CannotWorkError("A sample is signed when it is drawn, and by two people.")
    calls = sampled_calls(sample)
    projection = projection_of(sample, calls)
    if projection.open:
        raise CannotWorkError(f"{projection.open:,} calls have no conclusion yet.")
    name = name_of(person.actor)
    if sample.state == SampleState.DRAWN:
        part = "prepared"
        sample.prepared_at, sample.prepared_by = now, name
        sample.prepared_person = person.account.pk
        sample.state = SampleState.PREPARED
    else:
        if person.account.pk == sample.prepared_person:
            raise CannotWorkError("Another person must review it: you have signed it already.")
        part = "reviewed"
        sample.reviewed_at, sample.reviewed_by = now, name
        sample.reviewed_person = person.account.pk
        sample.state, sample.finished_at = SampleState.SIGNED, now
    sample.save()
    record_action(
        tenant,
        person.actor,
        SIGNED,
        str(sample.id),
        rows=[sample],
        part=part,
        person=str(person.account.pk),
        conclusions=conclusions_digest(
            (call.ledger_index, call.conclusion, call.texts) for call in calls
        ),
        errors=projection.errors,
        upper_limit=projection.limit,
    )
    return sample


def return_sample(tenant: Tenant, actor: Actor, pk: UUID, reason: str) -> None:
    """Return a prepared sample to be worked again. Raises CannotWorkError."""
    sample = _locked(pk, SampleState.PREPARED, "Only a sample that waits for a review is returned.")
    sample.state = SampleState.DRAWN
    sample.prepared_at, sample.prepared_by, sample.prepared_person = None, "", None
    sample.save()
    record_action(tenant, actor, RETURNED, str(sample.id), rows=[sample], reason=reason)


def is_error(call: SampledCall) -> bool:
    """Whether the conclusion about a call counts as an error."""
    return call.conclusion in ERRORS


def _locked(pk: UUID, state: SampleState, otherwise: str) -> Sample:
    sample = find_sample(pk, for_update=True)
    if sample is None or sample.state != state:
        raise CannotWorkError(otherwise)
    return sample
