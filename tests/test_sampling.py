"""What `pytest --sample` runs."""

from typing import cast

import pytest

from config.instance import BASE_DIR
from tests.support import sampling

MODULE = """
import pytest

@pytest.mark.parametrize("route", ["a", "b", "c"])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.generated({count}, kind="route")
def test_generated(route, seed):
    pass

@pytest.mark.parametrize("seed", range(10))
def test_all(seed):
    pass

@pytest.mark.sampled("start", 2)
@pytest.mark.parametrize("case", range(2))
def test_first_start(case):
    pass

@pytest.mark.sampled("start", 2)
def test_second_start():
    pass

@pytest.mark.sampled("start", 2)
def test_third_start():
    pass

@pytest.mark.sampled("stop", 1)
def test_stop():
    pass

@pytest.mark.slow
@pytest.mark.parametrize("case", range(2))
def test_slow_one(case):
    pass

@pytest.mark.slow
def test_slow_two():
    pass

@pytest.mark.slow
def test_slow_three():
    pass

@pytest.mark.slow
def test_slow_four():
    pass
"""


def cases(pytester: pytest.Pytester, count: int) -> list[pytest.Item]:
    pytester.makeini("[pytest]\nmarkers = generated\n sampled\n slow")
    items: list[pytest.Item] = pytester.getitems(MODULE.format(count=count))
    return items


def names(items: set[pytest.Item]) -> list[str]:
    return sorted(item.name for item in items if item.name.startswith("test_generated"))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "kept"), [(1, 3), (3, 3), (12, 12), (100, 30)])
def test_sample_has_each_kind_once_and_at_most_the_count(
    pytester: pytest.Pytester, count: int, kept: int
) -> None:
    items = cases(pytester, count)
    chosen = sampling.choose(items, seed=1)
    assert len(names(chosen)) == kept
    assert {name.split("-")[-1] for name in names(chosen)} == {"a]", "b]", "c]"}
    assert {item.name for item in chosen} >= {f"test_all[{n}]" for n in range(10)}


@pytest.mark.slow
def test_sample_depends_on_the_seed_and_not_on_the_order(pytester: pytest.Pytester) -> None:
    items = cases(pytester, 12)
    first = names(sampling.choose(items, seed=1))
    assert names(sampling.choose(items[::-1], seed=1)) == first
    assert names(sampling.choose(items, seed=2)) != first


@pytest.mark.slow
def test_of_tests_of_one_kind_the_count_is_kept_with_all_cases(pytester: pytest.Pytester) -> None:
    items = cases(pytester, 1)
    seen = set()
    for seed in range(20):
        kept = {item.name for item in sampling.choose(items, seed) if "_st" in item.name}
        assert "test_stop" in kept
        assert len({name.partition("[")[0] for name in kept if "start" in name}) == 2
        assert ("test_first_start[0]" in kept) == ("test_first_start[1]" in kept)
        seen |= kept
    assert len(seen) == 5


@pytest.mark.slow
def test_a_third_of_the_slow_tests_of_a_file_is_kept_with_all_cases(
    pytester: pytest.Pytester,
) -> None:
    items = cases(pytester, 1)
    seen = set()
    for seed in range(20):
        kept = {item.name for item in sampling.choose(items, seed) if "slow" in item.name}
        assert len({name.partition("[")[0] for name in kept}) == 2  # of four
        assert ("test_slow_one[0]" in kept) == ("test_slow_one[1]" in kept)
        seen |= kept
    assert len(seen) == 5


class Options:
    """What `some` asks a session for."""

    def __init__(self, *, sample: bool, seed: int) -> None:
        self.given = {"sample": sample, "randomly_seed": seed}

    def getoption(self, name: str, default: object = None) -> object:
        return self.given.get(name, default)


def test_some_pages_are_chosen_by_the_seed_in_their_order() -> None:
    pages = [f"/{n:02}" for n in range(40)]

    def some(*, sample: bool, seed: int) -> list[str]:
        options = cast(pytest.Config, Options(sample=sample, seed=seed))
        return sampling.some(options, "axe", pages, 7)

    chosen = [some(sample=True, seed=seed) for seed in (1, 1, 2)]
    assert [len(set(each)) for each in chosen] == [7, 7, 7]
    assert chosen[0] == chosen[1] != chosen[2]
    assert all(each == sorted(each) for each in chosen)
    assert some(sample=False, seed=1) == pages


@pytest.mark.parametrize(
    ("options", "seed"), [(("--randomly-seed=5",), 5), (("-p", "no:randomly"), 0)]
)
def test_sample_names_its_seed(
    pytester: pytest.Pytester, options: tuple[str, ...], seed: int
) -> None:
    pytester.makeini("[pytest]\nmarkers = generated\n sampled\n slow")
    pytester.makeconftest((BASE_DIR / "conftest.py").read_text())
    pytester.makepyfile(MODULE.format(count=3))
    ran = pytester.runpytest_inprocess("--quiet", "--sample", *options)
    assert ran.ret == 0
    ran.stdout.fnmatch_lines([f"sample: --randomly-seed={seed}"])
