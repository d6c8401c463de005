"""Walks two schemas side by side: every difference and its effect on the accepted values.

A difference is WIDER or NARROWER only if that is certain for all values. The effects of several
differences are joined by `|`. This is correct because a value must match all keywords of a schema.
Keywords that depend on each other are compared together: properties and additional properties,
alternatives, `contains` and its counts.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tools_registry.schema_diff.alternatives import compare_alternatives
from tools_registry.schema_diff.effect import ABSENT, Effect, SchemaChange, by_presence, joined
from tools_registry.schema_diff.keywords import compare_keywords, same_json
from tools_registry.schema_diff.reading import NOTHING, Document, Node, UndecidedError, View

TRIES_MAX = 8_000
"""Maximum number of pairs compared to match alternatives, which multiply when nested.

8,000 pairs take about half a second."""
DEPTH_MAX = 60
_INFINITY = float("inf")
_UNEVALUATED = {"unevaluatedProperties", "unevaluatedItems"}
_OF_OBJECTS = {"properties", "patternProperties", "additionalProperties", "propertyNames"}
_OF_ARRAYS = {"prefixItems", "items", "contains"}
_OF_ANYTHING = {"not", "if", "dependentSchemas", *_UNEVALUATED}
_DIALECTS = "keywords have other meanings in another dialect"
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def compare_schemas(old: Node, new: Node) -> list[SchemaChange]:
    """All differences between two schemas, in the order of the new one's members.

    A part that cannot be compared is a change with the effect UNDECIDED; its `why` is the reason.
    """
    if same_json(old, new):
        return []
    changes: list[SchemaChange] = []
    try:
        before, after = Document(old), Document(new)
        if before.dialect != after.dialect:
            dialects = before.dialect, after.dialect
            changes.append(SchemaChange("$", "$schema", *dialects, Effect.UNDECIDED, _DIALECTS))
        Comparison(before, after).compare(old, new, Place("$"), Findings(changes))
    except UndecidedError as error:
        why = str(error)
        changes.append(
            SchemaChange(
                path="$",
                keyword="$schema",
                before=ABSENT,
                after=ABSENT,
                effect=Effect.UNDECIDED,
                why=why,
            )
        )
    return changes


@dataclass(slots=True)
class Place:
    """The position of a pair of schemas."""

    path: str
    is_flipped: bool = False
    """Whether it is inside an odd number of `not`."""
    level: int = 0
    """Depth in the value; alternatives have the level of the schema that contains them."""
    depth: int = 0

    def below(self, step: str) -> "Place":
        """The place of a part of the value."""
        return Place(self.path + step, self.is_flipped, self.level + 1, self.depth + 1)

    def beside(self, *, flips: bool = False) -> "Place":
        """The place of another schema for the same value."""
        return Place(self.path, self.is_flipped != flips, self.level, self.depth + 1)


class Findings:
    """The changes found so far, and the pairs that are already compared."""

    def __init__(self, changes: list[SchemaChange]) -> None:
        self.changes = changes
        self.compared: set[tuple[int, int, bool]] = set()

    def apart(self) -> "Findings":
        """New, separate findings, for keywords that depend on all changes at their level."""
        return Findings([])

    def add(
        self, place: Place, keyword: str, before: Any, after: Any, effect: Effect, why: str = ""
    ) -> None:
        """Add a change; `effect` is its local effect, not flipped by an enclosing `not`."""
        effect = effect.flipped() if place.is_flipped else effect
        self.changes.append(
            SchemaChange(
                path=place.path, keyword=keyword, before=before, after=after, effect=effect, why=why
            )
        )


class _DifferentError(Exception):
    """A difference was found in a trial that ends at the first one."""


class _Trial(Findings):
    """Findings of a trial comparison, which are not reported."""

    def __init__(self, *, is_ended_by_any: bool) -> None:
        super().__init__([])
        self._is_ended_by_any = is_ended_by_any

    def apart(self) -> Findings:
        """New, separate findings of the same trial."""
        return _Trial(is_ended_by_any=self._is_ended_by_any)

    def add(
        self, place: Place, keyword: str, before: Any, after: Any, effect: Effect, why: str = ""
    ) -> None:
        """Add a change. Raises _DifferentError if it ends the trial."""
        if effect is not Effect.NONE and self._is_ended_by_any:
            raise _DifferentError
        super().add(place, keyword, before, after, effect, why=why)


class Comparison:
    """Walks two documents; `compare` adds the differences to the findings."""

    def __init__(self, old: Document, new: Document) -> None:
        self.old = old
        self.new = new
        self._tries = 0
        self._open: dict[tuple[int, int, bool], int] = {}
        """Pairs being compared, with their level in the value: references may lead back to them."""
        self._kept: list[Any] = []

    def compare(self, old: Node, new: Node, place: Place, findings: Findings) -> None:
        """Add the differences. Raises UndecidedError if alternatives need too many comparisons."""
        pair = (id(old), id(new), place.is_flipped)
        if pair in findings.compared or (isinstance(old, bool) and old is new):
            return
        self._tries += isinstance(findings, _Trial)
        if self._tries > TRIES_MAX:
            raise UndecidedError("too many nested alternatives")
        level = self._open.get(pair)
        if level is not None:
            # For a smaller part of the value, the result of the running comparison can be assumed.
            if level == place.level:
                findings.add(
                    place, "$ref", ABSENT, ABSENT, Effect.UNDECIDED, "the schema contains itself"
                )
            return
        if place.depth > DEPTH_MAX:
            findings.add(
                place, "$ref", ABSENT, ABSENT, Effect.UNDECIDED, "the schema is nested too deeply"
            )
            return
        try:
            before, after = self.old.view(old), self.new.view(new)
        except UndecidedError as error:
            findings.add(place, "$ref", ABSENT, ABSENT, Effect.UNDECIDED, why=str(error))
            return
        with self._under_way(pair, place.level):
            self.compare_views(before, after, place, findings)
        findings.compared.add(pair)

    def compare_views(self, old: View, new: View, place: Place, findings: Findings) -> None:
        """Add the differences between the two views."""
        if old is NOTHING or new is NOTHING:
            if old is not new:
                effect = Effect.WIDER if old is NOTHING else Effect.NARROWER
                findings.add(place, "schema", _shown(old), _shown(new), effect)
            return
        # Separate findings, so that the "unevaluated" keywords see all changes at this place, also
        # those in pairs that were compared before.
        here = findings if _UNEVALUATED.isdisjoint(old.keys() & new.keys()) else findings.apart()
        if not compare_alternatives(self, old, new, place, here):
            for one in compare_keywords(old, new):
                here.add(place, one.keyword, one.before, one.after, one.effect, one.why)
            words = old.keys() | new.keys()
            if not _OF_OBJECTS.isdisjoint(words):
                self._compare_properties(old, new, place, here)
            if not _OF_ARRAYS.isdisjoint(words):
                self._compare_items(old, new, place, here)
                self._compare_contains(old, new, place, here)
            if not _OF_ANYTHING.isdisjoint(words):
                self._compare_conditions(old, new, place, here)
                self._compare_unevaluated(old, new, place, here)
        if here is not findings:
            findings.changes += here.changes

    def effect(self, old: Node, new: Node, place: Place) -> Effect:
        """The effect of replacing `old` by `new`; adds nothing to the findings."""
        findings = _Trial(is_ended_by_any=False)
        self.compare(old, new, place, findings)
        effect = joined(change.effect for change in findings.changes)
        return effect.flipped() if place.is_flipped else effect

    def is_alike(self, old: Node, new: Node, place: Place) -> bool:
        """Whether no difference is found between the two."""
        try:
            self.compare(old, new, place, _Trial(is_ended_by_any=True))
        except _DifferentError:
            return False
        return True

    def keep(self, node: View) -> View:
        """Keep a temporary schema alive, so that its `id()` stays unique."""
        self._kept.append(node)
        return node

    @contextmanager
    def _under_way(self, pair: tuple[int, int, bool], level: int) -> Iterator[None]:
        self._open[pair] = level
        try:
            yield
        finally:
            del self._open[pair]

    def _compare_properties(self, old: View, new: View, place: Place, findings: Findings) -> None:
        olds, news = old.get("properties", {}), new.get("properties", {})
        rests = old.get("additionalProperties", True), new.get("additionalProperties", True)
        has_patterns = bool(old.get("patternProperties") or new.get("patternProperties"))
        for name in (*news, *(name for name in olds if name not in news)):
            here = place.below(_step(name))
            if name in olds and name in news:
                self.compare(olds[name], news[name], here, findings)
                continue
            # If only one schema names it, the other's additionalProperties apply to it.
            before, after = olds.get(name, rests[0]), news.get(name, rests[1])
            if has_patterns:  # patterns are not matched against the name: they may be malicious
                effect = self._beside_patterns(name in news, rests, here)
            else:
                effect = self.effect(before, after, here)
            why = ""
            if name in news and effect & Effect.NARROWER:
                why = "any value of this property was accepted before"
            elif name in olds and effect & Effect.WIDER:
                why = "other values of this property are accepted now"
            sides = olds.get(name, ABSENT), news.get(name, ABSENT)
            findings.add(here, "property", *sides, effect, why)
        patterns, others = old.get("patternProperties", {}), new.get("patternProperties", {})
        for pattern in (*others, *(each for each in patterns if each not in others)):
            here = place.below(f".<{pattern}>")
            if pattern in patterns and pattern in others:
                self.compare(patterns[pattern], others[pattern], here, findings)
            else:
                effect = self._beside_patterns(pattern in others, rests, here)
                sides = patterns.get(pattern, ABSENT), others.get(pattern, ABSENT)
                findings.add(here, "patternProperties", *sides, effect)
        self._compare_rest("additionalProperties", old, new, place.below(".*"), findings)
        self._compare_rest("propertyNames", old, new, place.below(".*~"), findings)

    def _beside_patterns(self, is_new: bool, rests: tuple[Node, Node], place: Place) -> Effect:
        """The effect for a name or pattern that only one schema has, beside patterns.

        It is decided only if the other schema accepts anything as an additional property.
        """
        rest = rests[0] if is_new else rests[1]
        if not self.is_alike(True, rest, place):
            return Effect.UNDECIDED
        return Effect.NARROWER if is_new else Effect.WIDER

    def _compare_items(self, old: View, new: View, place: Place, findings: Findings) -> None:
        olds, news = old.get("prefixItems", []), new.get("prefixItems", [])
        for index in range(max(len(olds), len(news))):
            before = olds[index] if index < len(olds) else old.get("items", True)
            after = news[index] if index < len(news) else new.get("items", True)
            self.compare(before, after, place.below(f"[{index}]"), findings)
        if len(olds) != len(news):  # "items" now starts at another index
            findings.add(place, "prefixItems", len(olds), len(news), Effect.NONE)
        self._compare_rest("items", old, new, place.below("[*]"), findings)

    def _compare_rest(
        self, keyword: str, old: View, new: View, place: Place, findings: Findings
    ) -> None:
        """Compare a schema for all other parts of the value; without it, they may be anything."""
        before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
        if isinstance(before, dict) and isinstance(after, dict):
            self.compare(before, after, place, findings)
        elif before is not after:
            effect = self.effect(old.get(keyword, True), new.get(keyword, True), place)
            findings.add(place, keyword, before, after, effect)

    def _compare_contains(self, old: View, new: View, place: Place, findings: Findings) -> None:
        before, after = old.get("contains", ABSENT), new.get("contains", ABSENT)
        if before is ABSENT or after is ABSENT:
            if before is not after:
                findings.add(place, "contains", before, after, by_presence(before, after))
            return
        here = place.below("[?]")
        if "maxContains" not in old and "maxContains" not in new:
            self.compare(before, after, here, findings)
        elif not self.is_alike(before, after, here):
            why = "the number of matching items has a lower and an upper limit"
            findings.add(here, "contains", before, after, Effect.UNDECIDED, why=why)
        for keyword, default, stricter in (("minContains", 1, 1), ("maxContains", _INFINITY, -1)):
            less = new.get(keyword, default) - old.get(keyword, default)
            if less and less == less:  # neither equal nor both infinite
                effect = Effect.NARROWER if less * stricter > 0 else Effect.WIDER
                sides = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
                findings.add(place, keyword, *sides, effect)

    def _compare_conditions(self, old: View, new: View, place: Place, findings: Findings) -> None:
        for keyword in ("not", "if"):
            before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            if before is ABSENT or after is ABSENT:
                if before is not after:
                    findings.add(place, keyword, before, after, by_presence(before, after))
            elif keyword == "not":
                self.compare(before, after, place.beside(flips=True), findings)
            elif not self.is_alike(before, after, place.beside()):
                why = "conditions (if) are not analyzed"
                findings.add(place, "if", before, after, Effect.UNDECIDED, why=why)
            else:
                for branch in ("then", "else"):
                    self.compare(
                        old.get(branch, True), new.get(branch, True), place.beside(), findings
                    )
        olds, news = old.get("dependentSchemas", {}), new.get("dependentSchemas", {})
        for name in (*news, *(each for each in olds if each not in news)):
            if name in olds and name in news:
                self.compare(olds[name], news[name], place.beside(), findings)
            else:
                sides = olds.get(name, ABSENT), news.get(name, ABSENT)
                findings.add(place, "dependentSchemas", *sides, by_presence(*sides))

    def _compare_unevaluated(self, old: View, new: View, place: Place, findings: Findings) -> None:
        for keyword, step in (("unevaluatedProperties", ".*"), ("unevaluatedItems", "[*]")):
            before, after = old.get(keyword, ABSENT), new.get(keyword, ABSENT)
            if before is ABSENT or after is ABSENT:
                if before is not after:
                    findings.add(place, keyword, before, after, by_presence(before, after))
                continue
            if any(not change.is_note for change in findings.changes):
                why = "the unevaluated values depend on other changes at this place"
                findings.add(place, keyword, before, after, Effect.UNDECIDED, why=why)
            self.compare(before, after, place.below(step), findings)


def _step(name: str) -> str:
    """A property in a path, in JSONPath syntax."""
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"[{json.dumps(name)}]"


def _shown(view: View) -> Any:
    return False if view is NOTHING else view or True
