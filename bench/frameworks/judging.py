"""Judge what Tooltrail shows of a run by what happened in it. Pure.

● right for all calls, ◐ for some, ○ for none; – if nothing can be said.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from bench.frameworks.calls import SeenCall

COLUMNS = ("all", "once", "name", "args", "result", "error", "nest", "context")
_SIGNS = "●◐○–"


class Mark(NamedTuple):
    """A cell of the table. `why` is empty if it is ●."""

    sign: str
    why: str = ""


def worse(one: Mark, other: Mark) -> Mark:
    """The worse of two marks."""
    return max(one, other, key=lambda mark: _SIGNS[:3].find(mark.sign))


def judge(
    wanted: Sequence[SeenCall], shown: Sequence[SeenCall], unreported: Collection[str] = ()
) -> dict[str, Mark]:
    """A mark for each column.

    A call that was refused did not run: it may be shown, and need not. `unreported` are members of
    the context that the framework does not know.
    """
    made = [call for call in wanted if call.state != "refused"]
    both = _pairs(made, shown)
    shown_names = Counter(call.tool for call in shown)
    made_names = Counter(call.tool for call in wanted)
    missing = Counter(call.tool for call in made) - shown_names
    extra = shown_names - made_names
    marks = {"all": _of(len(both), len(made), f"not shown: {_named(missing)}")}
    if not both:
        return marks | dict.fromkeys(COLUMNS[1:], Mark("–"))
    more = {name for name in extra if name in made_names}
    strange = {name for name in extra if name not in made_names}
    marks["once"] = Mark("○", f"more than once: {_named(more)}") if more else Mark("●")
    marks["name"] = Mark("◐", f"no tool: {_named(strange)}") if strange else Mark("●")
    marks["args"] = _same(both, lambda call: call.args)
    ok = [(one, other) for one, other in both if one.state == "ok"]
    marks["result"] = _same(ok, lambda call: call.result)
    marks["error"] = _errors([pair for pair in both if pair[0].state != "ok"])
    marks["nest"] = _same(both, lambda call: call.parent)
    marks["context"] = _contexts(both, unreported)
    return marks


def _pairs(made: Sequence[SeenCall], shown: Sequence[SeenCall]) -> list[tuple[SeenCall, SeenCall]]:
    """Each call with what is shown of it: of the same tool, with the same arguments first."""
    left = list(shown)
    pairs = []
    for call in sorted(made, key=lambda each: all(each.args != other.args for other in shown)):
        same = [each for each in left if each.tool == call.tool]
        if same:
            closest = min(same, key=lambda each: (each.args != call.args, each.state != call.state))
            left.remove(closest)
            pairs.append((call, closest))
    return pairs


def _of(right: int, of: int, why: str) -> Mark:
    return Mark("–") if not of else Mark("●") if right == of else Mark("◐" if right else "○", why)


def _same(pairs: Sequence[tuple[SeenCall, SeenCall]], get: Callable[[SeenCall], Any]) -> Mark:
    wrong = [(one, other) for one, other in pairs if not _equal(get(one), get(other))]
    why = ""
    if wrong:
        one, other = wrong[0]
        why = f"{one.tool}: {_text(get(other))} instead of {_text(get(one))}"
    return _of(len(pairs) - len(wrong), len(pairs), why)


def _equal(made: Any, shown: Any) -> bool:
    return bool(made == shown) or json.dumps(made) == shown  # ADK's args, as text


def _errors(pairs: Sequence[tuple[SeenCall, SeenCall]]) -> Mark:
    wrong = []
    for one, other in pairs:
        if other.state != one.state and not (one.state == "cancelled" and other.state == "failed"):
            wrong.append(f"{one.tool} is {other.state}")
        elif one.state == "failed" and (one.message or "") not in (other.message or ""):
            wrong.append(f"{one.tool}: {_text(other.message)}")
    return _of(len(pairs) - len(wrong), len(pairs), "; ".join(wrong))


def _contexts(pairs: Sequence[tuple[SeenCall, SeenCall]], unreported: Collection[str]) -> Mark:
    lacking: dict[str, list[str]] = {}
    compared = 0
    for one, other in pairs:
        for name in {"agent", "model", "conversation"}.difference(unreported):
            expected, actual = getattr(one, name), getattr(other, name)
            if expected is not None:
                compared += 1
                if actual != expected:
                    lacking.setdefault(name, []).append(f"{one.tool}: {_text(actual)}")
    why = ", ".join(
        f"{name} of {len(calls)} (such as {calls[0]})" for name, calls in sorted(lacking.items())
    )
    return _of(compared - sum(map(len, lacking.values())), compared, f"lacks {why}")


def _named(names: Counter[str] | set[str]) -> str:
    return ", ".join(sorted(names))


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`{text[:60]}{'…' if len(text) > 60 else ''}`".replace("|", "\\|").replace("\n", " ")
