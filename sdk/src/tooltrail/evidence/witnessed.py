"""What witnesses say about a bundle: up to which entry enough of them vouch for the ledger."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tooltrail.evidence.verdict import Check
from tooltrail.ledger import FormatError, LedgerError, parse_note
from tooltrail.ledger.cosignature import WitnessKey, cosigned_by
from tooltrail.ledger.lines import shown

_POLICY = re.compile(r"([1-9][0-9]{0,2})of([1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class Policy:
    """The witnesses that an auditor trusts, and how many of them must have signed."""

    witnesses: tuple[WitnessKey, ...]
    needed: int

    @classmethod
    def of(cls, witnesses: Sequence[WitnessKey], text: str | None = None) -> "Policy":
        """Read a policy such as `2of3`; without one, all must have signed. Raises FormatError.

        A key counts once, whatever name it has.
        """
        distinct = tuple({each.public: each for each in witnesses}.values())
        if len(distinct) != len(witnesses):
            raise FormatError("two witnesses have the same key")
        if text is None:
            return cls(distinct, len(distinct))
        match = _POLICY.fullmatch(text)
        if match is None:
            raise FormatError(f"a policy must have the form 2of3, not {shown(text)}")
        needed, number = int(match[1]), int(match[2])
        if number != len(distinct):
            raise FormatError(
                f"the policy is about {number} witnesses, and {len(distinct)} keys are given"
            )
        if needed > number:
            raise FormatError(f"{needed} of {number} witnesses cannot sign")
        return cls(distinct, needed)

    def __str__(self) -> str:
        return f"{self.needed} of {len(self.witnesses)}"


@dataclass(frozen=True, slots=True)
class Vouched:
    """The largest checkpoint of a bundle that a witness signed, and when."""

    size: int
    at: int


def check_witnesses(
    policy: Policy, notes: Mapping[int, bytes], end_index: int, check: Check
) -> bool:
    """Check the signatures of the witnesses on a bundle's checkpoints.

    `notes` are by size; that they are states of one ledger is another check. Returns whether the
    question could be decided: enough witnesses have signed a ledger with all entries of the bundle.
    """
    largest: dict[WitnessKey, Vouched] = {}
    for size, note in sorted(notes.items()):
        try:
            text, signatures = parse_note(note)
            for witness, at in cosigned_by(text, signatures, policy.witnesses).items():
                largest[witness] = Vouched(size, at)
        except LedgerError as error:
            check.fail(f"the checkpoint of {size:,} entries: {error}")
    names = ", ".join(
        f"{witness.name} ({vouched.size:,} entries, {_instant(vouched.at)})"
        for witness, vouched in sorted(largest.items(), key=lambda each: each[0].name)
    )
    sizes = sorted((each.size for each in largest.values()), reverse=True)
    covered = sizes[policy.needed - 1] if len(sizes) >= policy.needed else 0
    if covered >= end_index:
        check.message = f"{policy} witnesses vouch for every entry of the bundle: {names}"
        return True
    check.skip(
        f"{policy} witnesses vouch only for the entries before {covered:,}: {names}"
        if covered
        else f"signed by {len(sizes)} of {len(policy.witnesses)} witnesses, {policy.needed} needed"
        + (f": {names}" if names else "")
    )
    return False


def _instant(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s after 1970"
