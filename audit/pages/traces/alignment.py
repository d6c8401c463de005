"""Aligns the calls of two traces by tool and order. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from audit.queries.calls import Call
from audit.show.figures import duration

ALIGNED_MAX: Final = 500
"""The most calls of each trace that are aligned; aligning takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A call of each trace that belong together, or a call that only one of them has."""

    number: int
    left: Call | None
    right: Call | None

    @property
    def has_same_arguments(self) -> bool:
        """Whether both calls have the same tool and arguments, as their call ids say."""
        return (
            self.left is not None
            and self.right is not None
            and self.left.call_id == self.right.call_id
        )

    @property
    def has_same_outcome(self) -> bool:
        """Whether both calls ended alike: state, type of error, and whether they violate."""
        return (
            self.left is not None
            and self.right is not None
            and (self.left.tone, self.left.error_type) == (self.right.tone, self.right.error_type)
        )

    @property
    def slower_us(self) -> int | None:
        """How much longer the right call took, in microseconds; None unless both have ended."""
        if self.left is None or self.right is None:
            return None
        if self.left.duration_us is None or self.right.duration_us is None:
            return None
        return self.right.duration_us - self.left.duration_us

    @property
    def slower(self) -> str:
        """The same as text with its sign; '' unless both have ended."""
        if self.slower_us is None:
            return ""
        sign = "+" if self.slower_us > 0 else "\N{MINUS SIGN}" if self.slower_us < 0 else "±"
        return sign + duration(abs(self.slower_us))


def align(left: Sequence[Call], right: Sequence[Call]) -> list[Pair]:
    """Pair the first `ALIGNED_MAX` calls of two traces: the longest common runs of tools."""
    left, right = left[:ALIGNED_MAX], right[:ALIGNED_MAX]
    names = [call.tool_name for call in left], [call.tool_name for call in right]
    matcher = SequenceMatcher(None, *names, autojunk=False)
    pairs: list[tuple[Call | None, Call | None]] = []
    for kind, was, then, at, now in matcher.get_opcodes():
        if kind == "equal":
            pairs += zip(left[was:then], right[at:now], strict=True)
        else:
            pairs += [(call, None) for call in left[was:then]]
            pairs += [(None, call) for call in right[at:now]]
    return [Pair(number, *both) for number, both in enumerate(pairs, 1)]
