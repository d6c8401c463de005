"""A part of the cases that are generated: what `pytest --sample` runs, and so `.ci/run`.

`@pytest.mark.generated(20)` keeps 20 cases of a test. `@pytest.mark.generated(20, kind="route")`
keeps at least one case for each value of its parameter `route`, even if these are more than 20.
`.ci/full` and a plain `pytest` run all cases.
"""

import random
from collections import defaultdict

import pytest


def choose(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """The tests to run: all that are not generated, and those of each generated test's sample.

    Depends on the seed and on the names of the tests, not on their order: every process of
    `pytest -n 2` chooses the same.
    """
    chosen = set()
    cases = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("generated"):
            cases[item.nodeid.partition("[")[0]].append(item)
        else:
            chosen.add(item)
    for name, generated in cases.items():
        generated.sort(key=lambda case: case.nodeid)
        random.Random(f"{seed} {name}").shuffle(generated)
        chosen |= _sample(generated)
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
