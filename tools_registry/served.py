"""Compares two definitions of a tool as its server served them: what changed, and how bad is it?

Pure. A definition is a claim of a server, which may be hostile: it is read as a contract where that
is possible, and compared as a JSON document in any case.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any, Final

from pydantic import ValidationError

from tools_registry.contract_diff import ContractDiff, compare_contracts
from tools_registry.exchange.definitions import form_of, read_definition
from tools_registry.json_diff import JSONChange, json_diff
from tools_registry.schemas import ToolContract


class Class(StrEnum):
    """What a change of a definition means. One change may be of several classes."""

    COSMETIC = "cosmetic"
    """Only spacing, letter case, icons or `_meta`."""
    WORDING = "wording"
    """A model reads other words."""
    COMPATIBLE = "compatible"
    """The schemas change; nothing that was accepted or possible breaks."""
    BREAKING = "breaking"
    """Callers or consumers may break, or this could not be decided."""
    RISK = "risk-raising"
    """The tool declares that it may do more than before, or hides characters."""


# MCP's defaults: a tool that states nothing may do anything.
_HINTS: Final = {
    "readOnlyHint": (False, True, "It no longer declares that it only reads."),
    "destructiveHint": (True, False, "It no longer declares that it destroys nothing."),
    "idempotentHint": (False, True, "It no longer declares that repeating a call changes nothing."),
    "openWorldHint": (True, False, "It no longer declares that it stays within a closed domain."),
}
"""The default of each hint, its harmless value, and the message when that is no longer declared."""
_UNREAD: Final = ("/_meta", "/icons")
_SCHEMAS: Final = re.compile(
    r"/(function/)?(inputSchema|outputSchema|input_schema|parameters|output_schema)(/|$)"
)
_TEXTS: Final = re.compile(r"(description|title|/name)$")
_WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
_WORDS_MAX: Final = 1_500
# Characters that are not seen, or change how others are seen, beyond white space: format
# characters (also bidirectional ones, joiners and tags) and variation selectors.
_HIDDEN_CATEGORIES: Final = ("Cf", "Cc", "Co", "Cs")
_OTHER_HIDDEN: Final = re.compile(
    "[\u115f\u1160\u3164\uffa0\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `is_changed` if the other text does not have it there."""

    text: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of the documents. Of two texts, the parts that differ are marked."""

    change: JSONChange
    before: list[Piece]
    """Empty unless both values are texts."""
    after: list[Piece]


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """The differences of two definitions, their classes, and why they raise the risk."""

    differences: list[Difference]
    classes: list[Class]
    risks: list[str]
    contract: ContractDiff | None
    """None if a definition cannot be read as a contract."""


def compare_definitions(old: Any, new: Any) -> DefinitionDiff:
    """Compare two definitions as they were served. Neither needs to be valid."""
    changes = list(json_diff(old, new))
    contract = _compare_contracts(old, new)
    risks = _risks(old, new)
    classes = {_class_of(change, contract) for change in changes}
    if contract is not None and contract.is_breaking:
        classes.add(Class.BREAKING)
    if risks:
        classes.add(Class.RISK)
    if classes - {Class.COSMETIC}:
        classes.discard(Class.COSMETIC)
    if Class.BREAKING in classes:
        classes.discard(Class.COMPATIBLE)
    return DefinitionDiff(
        [_difference(change) for change in changes],
        [each for each in reversed(Class) if each in classes],
        risks,
        contract,
    )


def hidden_characters(value: Any) -> set[str]:
    """The invisible characters in the texts and names of a JSON value."""
    hidden: set[str] = set()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text if not text.isascii() or not text.isprintable():
                hidden.update(filter(_is_hidden, text))
            case dict() as members:
                waiting += [*members, *members.values()]
            case list() as items:
                waiting += items
    return hidden


def _is_hidden(character: str) -> bool:
    if character in "\t\n\r":
        return False
    category = unicodedata.category(character)
    return category in _HIDDEN_CATEGORIES or _OTHER_HIDDEN.match(character) is not None


def _compare_contracts(old: Any, new: Any) -> ContractDiff | None:
    contracts = [_contract(each) for each in (old, new)]
    if contracts[0] is None or contracts[1] is None:
        return None
    return compare_contracts(contracts[0], contracts[1])


def _contract(definition: Any) -> ToolContract | None:
    if form_of(definition) is None:
        return None
    members = dict(read_definition("$", definition).members or {})
    members["meta"] = {}  # compared as a document
    try:
        return ToolContract.model_validate({**members, "name": "tool"})
    except ValidationError:
        return None


def _risks(old: Any, new: Any) -> list[str]:
    before, after = _annotations(old), _annotations(new)
    risks = [
        words
        for name, (default, harmless, words) in _HINTS.items()
        if _hint(before, name, default) is harmless and _hint(after, name, default) is not harmless
    ]
    if hidden := hidden_characters(new) - hidden_characters(old):
        named = ", ".join(f"U+{ord(each):04X}" for each in sorted(hidden)[:5])
        risks.append(f"It contains invisible characters: {named}.")
    return risks


def _hint(annotations: Mapping[str, Any], name: str, default: bool) -> bool:
    value = annotations.get(name)
    if name == "destructiveHint" and annotations.get("readOnlyHint") is True:
        return False  # what only reads destroys nothing
    return value if isinstance(value, bool) else default


def _annotations(definition: Any) -> dict[str, Any]:
    annotations = definition.get("annotations") if isinstance(definition, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _class_of(change: JSONChange, contract: ContractDiff | None) -> Class:
    pointer = change.pointer
    if pointer.startswith(_UNREAD):
        return Class.COSMETIC
    before, after = change.before, change.after
    if isinstance(before, str) and isinstance(after, str) and _words(before) == _words(after):
        return Class.COSMETIC if _TEXTS.search(pointer) else Class.WORDING
    if _TEXTS.search(pointer) or not _SCHEMAS.match(pointer):
        return Class.WORDING
    return Class.BREAKING if contract is None else Class.COMPATIBLE


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


def _difference(change: JSONChange) -> Difference:
    if not (isinstance(change.before, str) and isinstance(change.after, str)):
        return Difference(change, [], [])
    old, new = _WORD.findall(change.before), _WORD.findall(change.after)
    if max(len(old), len(new)) > _WORDS_MAX:  # aligning takes quadratic time
        return Difference(change, [Piece(change.before, True)], [Piece(change.after, True)])
    before, after = [], []
    for tag, was, then, at, now in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before.append(Piece("".join(old[was:then]), tag != "equal"))
        after.append(Piece("".join(new[at:now]), tag != "equal"))
    return Difference(
        change, [each for each in before if each.text], [each for each in after if each.text]
    )
