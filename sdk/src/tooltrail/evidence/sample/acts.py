"""What entries of the ledger say about one sample: each step of it is an action."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from tooltrail.evidence.layout import Count

COMMITTED, FIXED, DRAWN = "sample.commit", "sample.fix", "sample.draw"
CONCLUDED, SIGNED, RETURNED = "sample.conclude", "sample.sign", "sample.return"

type Digits = Annotated[str, msgspec.Meta(max_length=64)]
type Part = Literal["prepared", "reviewed"]


class Committed(msgspec.Struct):
    """The sample was defined, before anybody knew the population."""

    definition: Digits
    commitment: Digits = ""
    """To the auditor's nonce; '': there is none."""


class Fixed(msgspec.Struct):
    """The calls of the query were listed."""

    population: Digits
    calls: Count
    ledger_size: Count
    """Calls whose first entry came later are not in the population."""
    size: Count
    """How many calls are to be drawn."""


class Drawn(msgspec.Struct):
    """The calls were drawn."""

    nonce: Digits
    checkpoint_size: Count
    checkpoint_root: Digits
    seed: Digits
    selection: Digits


class Concluded(msgspec.Struct):
    """Somebody concluded about a call, or changed their conclusion."""

    index: Count
    conclusion: str
    texts: Digits


class Signed(msgspec.Struct):
    """Somebody signed all conclusions: whoever prepared them, or whoever reviewed them."""

    part: Part
    person: str
    """An id of the person: two people have two."""
    conclusions: Digits
    errors: Count
    upper_limit: Count


@dataclass(frozen=True, slots=True)
class Entry[A]:
    """An entry about the sample, and who acted."""

    index: int
    actor: str
    facts: A


class _Action(msgspec.Struct):
    verb: str
    subject: str
    details: msgspec.Raw
    actor: str = ""


class Acts:
    """The entries about one sample, by what they say, in the order of the ledger."""

    def __init__(self, sample_id: str) -> None:
        self._id = sample_id
        self._seen: dict[int, tuple[_Action, msgspec.Struct]] = {}

    def note(self, index: int, raw: bytes) -> None:
        """Note an action; other subjects and verbs are ignored. Raises msgspec.MsgspecError."""
        action = msgspec.json.decode(raw, type=_Action)
        form = _FORMS.get(action.verb)
        if action.subject == self._id and form is not None:
            self._seen[index] = action, msgspec.json.decode(action.details, type=form)

    def of[A: msgspec.Struct](self, form: type[A]) -> list[Entry[A]]:
        """The entries of one kind."""
        return [
            Entry(index, action.actor, facts)
            for index, (action, facts) in sorted(self._seen.items())
            if type(facts) is form
        ]


class Returned(msgspec.Struct):
    """A reviewer returned the sample to be worked again: earlier sign-offs do not count."""


_FORMS: dict[str, type[msgspec.Struct]] = {
    COMMITTED: Committed,
    FIXED: Fixed,
    DRAWN: Drawn,
    CONCLUDED: Concluded,
    SIGNED: Signed,
    RETURNED: Returned,
}
