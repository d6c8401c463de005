"""1,000 random alterations by a superuser, each with its expected verdict.

The worker creates and signs one small log. Then, for each alteration: an attacker with full access
to the database changes it and hides the change as well as possible without the private key, the
server creates an evidence bundle from the altered database, and `verify` judges the bundle. Which
calls are altered, and how, is random with a fixed seed.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings
from tooltrail.evidence import Verdict

from audit.index.reindex import reindex
from tests.support.ledger_alterations import ALTERATIONS, Expected, sign_with_another_key
from tests.support.tampered_ledger import (
    ERASED,
    SEED,
    Case,
    new_case,
)

TIMES = 1_000


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """One request an hour. The first payloads have expired and are erased and declared."""
    folder = tmp_path_factory.mktemp("ledger")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "LEDGER_DIR", folder)
        yield from new_case(folder)


def failed(verdict: Verdict) -> set[str]:
    """The checks that failed."""
    return {check.name for check in verdict.checks if check.problem_count}


def index_differs(case: Case) -> bool:
    """Whether `reindex --check` reports a difference."""
    report = reindex(case.tenant.id, repair=False, progress=lambda done, size: None)
    return not report.is_clean


def test_unaltered_bundle_is_genuine_and_consistent_with_all_checkpoints(
    case: Case, tmp_path: Path
) -> None:
    verdict = case.judge(case.of, tmp_path / "evidence.zip", *case.kept.values())
    assert verdict.is_genuine, failed(verdict)
    assert not verdict.is_undecided
    assert verdict.erased == ERASED
    assert not index_differs(case)


def test_alterations_add_up_to_one_thousand() -> None:
    assert sum(ALTERATIONS.values()) == TIMES


@pytest.mark.generated(60, kind="alter")
@pytest.mark.parametrize(
    ("alter", "number"),
    [
        pytest.param(
            alter,
            number,
            id=f"{alter.__name__}-{number}",
            marks=[pytest.mark.slow] if number else [],  # one of each kind is quick
        )
        for alter, times in ALTERATIONS.items()
        for number in range(times)
    ],
)
def test_random_alterations_get_the_expected_verdict(
    alter: Callable[[Case, random.Random], Expected], number: int, case: Case, tmp_path: Path
) -> None:
    path, newest = tmp_path / "evidence.zip", case.kept[max(case.kept)]
    try:
        expected = alter(case, random.Random(f"{SEED} {number}"))
        verdict = case.judge(expected.of or case.of, path)
        failures = failed(verdict)
        what = "\n".join(verdict.lines())
        assert expected.failed <= failures <= expected.failed | expected.may_fail, what
        if expected.previous:
            assert failed(case.judge(case.of, path, newest)) == {"previous"}, what
        if expected.index_differs:
            assert index_differs(case), what
        assert failures or expected.previous or expected.index_differs, what
    finally:
        case.restore()
    if number == 0:
        assert case.judge(case.of, path).is_genuine, "the case was not restored"


def test_bundle_signed_with_another_key_passes_without_a_trusted_key(
    case: Case, tmp_path: Path
) -> None:
    sign_with_another_key(case, random.Random(SEED))
    verdict = case.judge(case.of, tmp_path / "evidence.zip", trusts=False)
    case.restore()
    assert verdict.is_genuine
    assert "are from the bundle itself" in verdict.limits[0], "the limit must be stated"
