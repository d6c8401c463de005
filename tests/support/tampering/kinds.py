"""What a kind of tampering is: who can do it, how, and who must find it."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import errors

from tests.support.tampering.finders import Explain, Finder, found_by
from tests.support.tampering.record import NothingChangedError, Power, Record

type Act = Callable[[Record, random.Random], set[Finder] | None]
"""Tampers with a record, at random within its kind. Returns who found it if it is no matter of the
record itself: of a bundle's file, for example.
"""


@dataclass(frozen=True)
class Tampering:
    """A kind of tampering."""

    what: str
    """What was done, in words. Kinds that differ only in `of` have the same."""
    of: str
    """The table, column or file; '' if `what` says it all."""
    power: Power
    """What an attacker needs at least."""
    found_by: frozenset[Finder]
    act: Act
    why: str = ""
    """Why nobody finds it, or why not those who could be expected to."""

    @property
    def name(self) -> str:
        return f"{self.what}: {self.of}" if self.of else self.what


def kind(
    what: str, power: Power, *finders: Finder, of: str = "", why: str = ""
) -> Callable[[Act], Tampering]:
    """Decorate an act: it becomes a kind."""

    def made(act: Act) -> Tampering:
        return Tampering(what, of, power, frozenset(finders), act, why)

    return made


def statements(*texts: str, power: Power) -> Act:
    """An act that is nothing but SQL. `%(tenant)s` is the tenant; each must change a row."""

    def act(record: Record, _: random.Random) -> None:
        for text in texts:
            record.change(text, power)

    return act


def sql(
    what: str, power: Power, text: str, *finders: Finder, of: str = "", why: str = ""
) -> Tampering:
    """A kind that is one statement."""
    return Tampering(what, of, power, frozenset(finders), statements(text, power=power), why)


def outcome(one: Tampering, record: Record, rng: random.Random, explain: Explain) -> set[Finder]:
    """Do it, let the server work on, and return who finds it."""
    record.explain = explain
    try:
        finders = one.act(record, rng)
    except (errors.InsufficientPrivilege, NothingChangedError) as error:
        explain(f"database: {error}")
        return {Finder.DATABASE}
    if finders is not None:
        return finders
    record.go_on()
    return found_by(record, explain)
