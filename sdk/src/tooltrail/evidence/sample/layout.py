"""`sample.json` of a bundle: an auditor's sample, its conclusions, and the digests of both."""

from collections.abc import Iterable
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from tooltrail.evidence.layout import Count, Hash
from tooltrail.evidence.sample.attributes import Plan
from tooltrail.evidence.statements import report_digest

type Conclusion = Literal["", "pass", "exception", "unjudged"]
"""What the auditor says of a call; '': nothing yet."""
type Text = Annotated[str, msgspec.Meta(max_length=100_000)]

ERRORS = ("exception", "unjudged")
"""Conclusions that count as errors. What cannot be judged does not show that the control worked."""


class Definition(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the sample is of, and how large. The entry that committed to it has its digest."""

    name: Text
    query: Text
    """Which calls: a query with its times as instants (docs/queries.md)."""
    size: Count | None
    """The number of calls that was wanted; None: it follows from the three below."""
    confidence: Count | None
    """In hundredths of a percent, as the next two."""
    tolerable: Count | None
    expected: Count | None
    salt: Text
    """Random, so that nobody can guess the query from the digest."""

    @property
    def plan(self) -> Plan | None:
        """The plan from which the size follows; None: it is a number."""
        if self.confidence is None or self.tolerable is None or self.expected is None:
            return None
        return Plan(self.confidence, self.tolerable, self.expected)

    @property
    def digest(self) -> str:
        """SHA-256 (digits) of its members as canonical JSON."""
        return report_digest(msgspec.to_builtins(self))


class SampledCall(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A drawn call and what the auditors say of it."""

    index: Count
    """Its place in the population: the ledger index of its first entry."""
    conclusion: Conclusion = ""
    texts: str = ""
    """The digest of its texts; '' before it has a conclusion."""
    note: Text | None = None
    """The texts; None if they were erased with the call."""
    exception: Text | None = None
    salt: Text | None = None


class SampleFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`sample.json`. None of it is believed unchecked."""

    id: UUID
    definition: Definition
    nonce: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")]
    """Of the auditor; '' if there was none."""
    checkpoint_size: Count
    """Of the checkpoint whose root is in the seed."""
    checkpoint_root: Hash
    calls: list[SampledCall]
    """In the order of the draw."""


def texts_digest(note: str, exception: str, salt: str) -> str:
    """SHA-256 (digits) of the texts about a call, as canonical JSON."""
    return report_digest({"note": note, "exception": exception, "salt": salt})


def conclusions_digest(calls: Iterable[tuple[int, str, str]]) -> str:
    """What a sign-off signs: SHA-256 of index, conclusion and digest of the texts of each call."""
    return report_digest({"calls": [list(call) for call in calls]})
