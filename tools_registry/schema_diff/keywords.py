"""Compares the independent keywords of JSON Schema, each without regard to the others.

A value must match all of them. So an added keyword can only refuse more, and a removed one can
only accept more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools_registry.schema_diff.effect import ABSENT, NOTES, Effect, by_presence, effect_of

TYPES = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
"""Types of values; `integer` and `fraction` together are JSON Schema's `number`."""

_INFINITY = float("inf")
_VALUES = {"const", "enum"}
_NEEDS = {"required", "dependentRequired"}
_LEAST = ("minLength", "minItems", "minProperties")
_MOST = ("maxLength", "maxItems", "maxProperties")
_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", *_LEAST, *_MOST}
_OPAQUE = {
    *("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    *("dependencies", "additionalItems"),  # from older dialects, left over in a newer one
}
"""Keywords whose accepted values are not computed."""


@dataclass(frozen=True, slots=True)
class KeywordChange:
    """One keyword that differs between two views."""

    keyword: str
    before: Any
    after: Any
    effect: Effect
    why: str = ""


def compare_keywords(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    """The differences in the independent keywords of two views."""
    words = old.keys() | new.keys()
    if "type" in words:
        yield from _compare_types(old, new)
    if not _VALUES.isdisjoint(words):
        yield from _compare_values(old, new)
    if not _BOUNDS.isdisjoint(words):
        yield from _compare_bounds(old, new)
    if not _NEEDS.isdisjoint(words):
        yield from _compare_required(old, new)
    if "multipleOf" in words:
        yield from _compare_multiples(old, new)
    unique = bool(old.get("uniqueItems")), bool(new.get("uniqueItems"))
    if unique[0] != unique[1]:
        effect = effect_of(loses=unique[1], gains=unique[0])
        yield KeywordChange("uniqueItems", *_both("uniqueItems", old, new), effect)
    for keyword in sorted(_OPAQUE & words):
        yield from _compare_opaque(keyword, old, new)
    yield from compare_notes(old, new)


def compare_notes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    """The differences in texts for readers."""
    for keyword in sorted(NOTES & (old.keys() | new.keys())):
        before, after = _both(keyword, old, new)
        if not same_json(before, after):
            yield KeywordChange(keyword, before, after, Effect.NONE)


def types_of(view: Mapping[str, Any]) -> frozenset[str]:
    """The types of values that `type`, `const` and `enum` of a view allow."""
    named = view.get("type")
    types = TYPES
    if named is not None:
        types = frozenset(
            part
            for name in ([named] if isinstance(named, str) else named)
            for part in (("integer", "fraction") if name == "number" else (name,))
        )
    values = allowed_values(view)
    if values is not None:
        types &= {_type_of(value) for value in values.values()}
    return types


def allowed_values(view: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values that `enum` and `const` allow, by `json_key`; None without these keywords."""
    if "const" in view:
        allowed = {json_key(view["const"]): view["const"]}
        if "enum" in view:
            listed = {json_key(value) for value in view["enum"]}
            allowed = {key: value for key, value in allowed.items() if key in listed}
        return allowed
    if "enum" in view:
        return {json_key(value): value for value in view["enum"]}
    return None


def json_key(value: Any) -> str:
    """A text that is the same for values equal in JSON Schema: 1 and 1.0, but not true."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(json_key, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{name!r}:{json_key(value[name])}' for name in sorted(value))}}}"
    return repr(value)


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON Schema; ABSENT equals itself."""
    return one is other or (
        (type(one) is type(other) or {type(one), type(other)} <= {int, float})
        and json_key(one) == json_key(other)
    )


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _both(keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Any, Any]:
    return old.get(keyword, ABSENT), new.get(keyword, ABSENT)


def _compare_types(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    before, after = (types_of({"type": each.get("type", [*TYPES])}) for each in (old, new))
    if before != after:
        effect = effect_of(loses=bool(before - after), gains=bool(after - before))
        yield KeywordChange("type", *_both("type", old, new), effect)


def _compare_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    before, after = allowed_values(old), allowed_values(new)
    if before is None and after is None:
        return
    keyword = "const" if "const" in old or "const" in new else "enum"
    if keyword == "const" and ("enum" in old or "enum" in new):
        keyword = "enum"
    if before is None or after is None:
        effect = effect_of(loses=before is None, gains=after is None)
    else:
        effect = effect_of(
            loses=bool(before.keys() - after.keys()), gains=bool(after.keys() - before.keys())
        )
        if effect is Effect.NONE:
            return
    yield KeywordChange(keyword, _listed(keyword, before), _listed(keyword, after), effect)


def _listed(keyword: str, values: dict[str, Any] | None) -> Any:
    if values is None:
        return ABSENT
    listed = list(values.values())
    return listed[0] if keyword == "const" and len(listed) == 1 else listed


def _compare_bounds(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    for least in _LEAST:
        yield from _compare_bound(
            keyword=least,
            before=old.get(least, 0),
            after=new.get(least, 0),
            sign=1,
            old=old,
            new=new,
        )
    for most in _MOST:
        before, after = old.get(most, _INFINITY), new.get(most, _INFINITY)
        yield from _compare_bound(
            keyword=most, before=before, after=after, sign=-1, old=old, new=new
        )
    for bound, sign in (("minimum", 1), ("maximum", -1)):
        before, after = (_limit(each, bound, sign) for each in (old, new))
        for keyword in (f"exclusive{bound.capitalize()}", bound):
            if not same_json(*_both(keyword, old, new)):
                yield from _compare_bound(
                    keyword=keyword, before=before, after=after, sign=sign, old=old, new=new
                )
                break


def _limit(view: Mapping[str, Any], bound: str, sign: int) -> tuple[Any, int]:
    """The stricter of a bound and its exclusive form; at equal values the exclusive one wins."""
    exclusive = f"exclusive{bound.capitalize()}"
    none = -sign * _INFINITY
    closed, open_ = (view.get(bound, none), 0), (view.get(exclusive, none), sign)
    return max(closed, open_) if sign > 0 else min(closed, open_)


def _compare_bound(
    keyword: str,
    before: Any,
    after: Any,
    sign: int,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> Iterator[KeywordChange]:
    if before == after:
        return
    is_stricter = after > before if sign > 0 else after < before
    effect = Effect.NARROWER if is_stricter else Effect.WIDER
    yield KeywordChange(keyword, *_both(keyword, old, new), effect)


def _compare_required(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    before, after = set(old.get("required", ())), set(new.get("required", ()))
    for name in sorted(after - before):
        yield KeywordChange("required", ABSENT, name, Effect.NARROWER)
    for name in sorted(before - after):
        yield KeywordChange("required", name, ABSENT, Effect.WIDER)
    needs, needed = old.get("dependentRequired", {}), new.get("dependentRequired", {})
    for name in sorted(needs.keys() | needed.keys()):
        then, now = set(needs.get(name, ())), set(needed.get(name, ()))
        if then != now:
            yield KeywordChange(
                "dependentRequired",
                {name: sorted(then)} if then else ABSENT,
                {name: sorted(now)} if now else ABSENT,
                effect_of(loses=bool(now - then), gains=bool(then - now)),
            )


def _compare_multiples(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeywordChange]:
    before, after = _both("multipleOf", old, new)
    if same_json(before, after):
        return
    effect = by_presence(before, after)
    if isinstance(before, int) and isinstance(after, int):
        effect = effect_of(loses=before % after != 0, gains=after % before != 0)
    yield KeywordChange("multipleOf", before, after, effect)


def _compare_opaque(
    keyword: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[KeywordChange]:
    before, after = _both(keyword, old, new)
    if not same_json(before, after):
        effect = by_presence(before, after)
        why = f"two values of {keyword} are not compared"
        yield KeywordChange(
            keyword, before, after, effect, why if effect is Effect.UNDECIDED else ""
        )
