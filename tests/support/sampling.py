"""A part of long tests: what `pytest --sample` runs, and so `.ci/run`.

`@pytest.mark.generated(20)` keeps 20 cases of a test. `@pytest.mark.generated(20, kind="route")`
keeps at least one case for each value of its parameter `route`, even if these are more than 20.
`@pytest.mark.sampled("refused start", 2)` keeps two of the tests with this mark and name, with all
their cases. Of a file's other tests that are marked `slow`, a third is kept. A test that visits
many pages takes `some` of them. `.ci/full` and a plain `pytest` run everything.
"""

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest


def seed(config: pytest.Config) -> int:
    """The seed of the sample: `--randomly-seed`, or 0 without pytest-randomly."""
    return int(config.getoption("randomly_seed", 0))


def some[T](config: pytest.Config, name: str, things: Sequence[T], count: int) -> list[T]:
    """With `--sample`, `count` of the things in their order, by the seed and the name; else all."""
    if not config.getoption("sample"):
        return list(things)
    places = random.Random(f"{seed(config)} {name}").sample(range(len(things)), count)
    return [things[place] for place in sorted(places)]


def choose(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """The tests to run: all that have none of the marks, and the sample of those that have one.

    Depends on the seed and on the names of the tests, not on their order: every process of
    `pytest -n 2` chooses the same.
    """
    chosen = set()
    cases: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    tests: defaultdict[tuple[str, int], dict[str, list[pytest.Item]]] = defaultdict(dict)
    slow: defaultdict[str, dict[str, list[pytest.Item]]] = defaultdict(dict)
    for item in items:
        name = item.nodeid.partition("[")[0]
        if isinstance(item, pytest.Function) and item.get_closest_marker("generated"):
            cases[name].append(item)
        elif mark := item.get_closest_marker("sampled"):
            tests[mark.args].setdefault(name, []).append(item)
        elif item.get_closest_marker("slow"):
            slow[name.partition("::")[0]].setdefault(name, []).append(item)
        else:
            chosen.add(item)
    for name, generated in cases.items():
        generated.sort(key=lambda case: case.nodeid)
        random.Random(f"{seed} {name}").shuffle(generated)
        chosen |= _sample(generated)
    for file, named in slow.items():
        tests[file, (len(named) + 2) // 3] = named
    for (kind, count), named in tests.items():
        for name in random.Random(f"{seed} {kind}").sample(sorted(named), min(count, len(named))):
            chosen.update(named[name])
    return chosen


def _sample(cases: list[pytest.Function]) -> set[pytest.Item]:
    marker = cases[0].get_closest_marker("generated")
    assert marker is not None
    (count,), kind = marker.args, marker.kwargs.get("kind")
    of_kind: dict[str, pytest.Function] = {}
    for case in cases if kind is not None else ():
        of_kind.setdefault(repr(case.callspec.params[str(kind)]), case)
    chosen: dict[pytest.Item, None] = dict.fromkeys([*of_kind.values(), *cases])
    return set(list(chosen)[: max(count, len(of_kind))])
