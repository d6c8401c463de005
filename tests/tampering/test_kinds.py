"""Each kind of tampering is found by whom it says, and by nobody else.

One record is made (`tests/support/tampering/story.py`). Each case tampers with it, at random within
its kind, lets the server work on, asks everybody who could find it, and puts the record back.
"""

import random
from collections.abc import Iterator

import pytest
from django.conf import settings

from audit.evidence import declarations
from tests.support import sampling
from tests.support.tampering import all_kinds, rows
from tests.support.tampering.finders import found_by
from tests.support.tampering.kinds import Tampering, outcome
from tests.support.tampering.record import Power, Record
from tests.support.tampering.story import new_record

KINDS = {kind.name: kind for kind in all_kinds()}
DRAWS = 5
SAMPLED = 130
"""How many times each kind is drawn; with `--sample` once."""


@pytest.fixture(scope="module")
def record(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Record]:
    """The record of one tenant, and what an auditor kept of it."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("tampering")
        patch.setattr(settings, "LEDGER_DIR", folder / "ledger")
        patch.setattr(declarations, "_WAIT_SECONDS", 0.0)  # nobody signs while a bundle is made
        with new_record(folder) as made:
            made.is_thorough = not pytestconfig.getoption("sample")
            yield made


def test_there_are_kinds_enough_of_every_power() -> None:
    assert len(KINDS) == len(all_kinds()), "two kinds have the same name"
    assert len(KINDS) >= 160
    assert len(KINDS) * DRAWS >= 1_000
    assert {kind.power for kind in KINDS.values()} == set(Power)


def test_what_nobody_finds_has_a_reason() -> None:
    assert [name for name, kind in KINDS.items() if not kind.found_by and not kind.why] == []


def test_every_table_has_kinds_or_a_reason() -> None:
    assert rows.unnamed() == set()


@pytest.mark.slow
def test_record_itself_is_found_faultless(record: Record) -> None:
    record.go_on()
    notes: list[str] = []
    assert found_by(record, notes.append) == set(), notes
    record.restore()


@pytest.mark.slow
@pytest.mark.generated(SAMPLED, kind="what")
@pytest.mark.parametrize(
    ("what", "name", "number"),
    [(name.partition(":")[0], name, number) for name in KINDS for number in range(DRAWS)],
)
def test_tampering_is_found_by_whom_its_kind_says(
    what: str, name: str, number: int, record: Record, pytestconfig: pytest.Config
) -> None:
    """`what` is the kind without its table: of each at least one is sampled."""
    kind: Tampering = KINDS[name]
    assert name.startswith(what)
    notes: list[str] = []
    rng = random.Random(f"{sampling.seed(pytestconfig)} {number} {name}")
    try:
        finders = outcome(kind, record, rng, notes.append)
    finally:
        record.restore()
    assert finders == kind.found_by, "\n".join(notes)
