"""JSON from an executor as HTML: everything escaped, large values cut, violations marked.

Pure. Values are those of `audit.events.json_values`: numbers stay as they were written.
Characters that would hide or reverse text are shown as escapes (`audit.show.text`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audit.events.json_values import Number
from audit.show.text import visible

MAX_LINES = 300
MAX_STRING = 1_500  # characters of one string
_FOCUS_KEPT = 3  # children that stay if only values that lead to a mark are opened
INLINE_WIDTH = 56  # a list or object of scalars not wider than this stays on one line


class Shape(str):
    """Shown in place of a value that is hidden (`audit.show.masking`)."""

    __slots__ = ()


class _Absent:
    """Stands for a missing value, as null is a value."""


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Mark:
    """A violation to show at its place."""

    code: str
    note: str  # `expected number, received string`
    is_warning: bool = False
    received: Any = ABSENT
    coerced: Any = ABSENT


@dataclass(slots=True)
class Tree:
    """A drawn value. `unplaced` are the marks whose path is not in it."""

    html: SafeString
    is_cut: bool
    unplaced: list[tuple[str, Mark]]


@dataclass(slots=True)
class _Drawing:
    marks: Mapping[str, Sequence[Mark]]
    max_lines: int
    is_focused: bool
    """Whether only values that lead to a mark are opened."""
    lines: list[SafeString] = field(default_factory=list)
    placed: set[str] = field(default_factory=set)
    marked_prefixes: set[str] = field(default_factory=set)
    is_cut: bool = False


def draw(
    value: Any, marks: Mapping[str, Sequence[Mark]] | None = None, *, max_lines: int = MAX_LINES
) -> Tree:
    """A parsed value as lines of HTML for a <pre>, cut after `max_lines`.

    The keys of `marks` are paths as the output guard writes them: `$`, `.key`, `[0]`. If a mark
    would be after the cut, values that lead to no mark are left out instead.
    """
    marks = marks or {}
    drawing = _drawn(value, marks, max_lines, is_focused=False)
    if drawing.is_cut and len(drawing.placed) < len(marks):
        drawing = _drawn(value, marks, max_lines, is_focused=True)
        drawing.is_cut = True
    unplaced = [(p, mark) for p in marks if p not in drawing.placed for mark in marks[p]]
    return Tree(
        format_html_join("\n", "{}", ((x,) for x in drawing.lines)), drawing.is_cut, unplaced
    )


def _drawn(
    value: Any, marks: Mapping[str, Sequence[Mark]], max_lines: int, *, is_focused: bool
) -> _Drawing:
    drawing = _Drawing(marks, max_lines, is_focused)
    for path in marks:
        # Every container above a mark is opened, so that the mark has its own line.
        drawing.marked_prefixes.update(path[: m.start()] for m in re.finditer(r"[.\[]", path))
    _value(drawing, "$", value, 0, lead=SafeString(""), tail=SafeString(""))
    return drawing


def inline(value: Any, *, width: int = 60) -> SafeString:
    """A value on one line, cut after `width` characters."""
    text = _compact(value)
    return visible(text if len(text) <= width else text[:width] + "…")


def _value(
    drawing: _Drawing, path: str, value: Any, depth: int, lead: SafeString, tail: SafeString
) -> None:
    """Draw one value; `lead` is its key, `tail` the comma after it."""
    if _is_full(drawing):
        return
    marks = drawing.marks.get(path, ())
    if marks:
        drawing.placed.add(path)
    if drawing.is_focused and depth and _is_shut(drawing, path, value):
        brackets = "{{ … {} more }}" if isinstance(value, dict) else "[ … {} more ]"
        shut = format_html(brackets, f"{len(value):,}")
        _line(drawing, depth, format_html('{}<span class="j-cut">{}</span>{}', lead, shut, tail))
        return
    if isinstance(value, dict | list) and value and not _fits(drawing, path, value, depth):
        _container(drawing, path, value, depth, lead=lead, tail=tail, marks=marks)
    else:
        shown = _marked(_scalar(value), marks)
        _line(drawing, depth, format_html("{}{}{}{}", lead, shown, tail, _notes(value, marks)))


def _container(
    drawing: _Drawing,
    path: str,
    value: dict[str, Any] | list[Any],
    depth: int,
    lead: SafeString,
    tail: SafeString,
    marks: Sequence[Mark],
) -> None:
    opener, closer = ("{", "}") if isinstance(value, dict) else ("[", "]")
    head = _marked(format_html("{}", opener), marks)
    _line(drawing, depth, format_html("{}{}{}", lead, head, _notes(ABSENT, marks)))
    last, left_out = len(value) - 1, 0
    for position, (key_path, key, child) in enumerate(_children(drawing, path, value)):
        if drawing.is_focused and position >= _FOCUS_KEPT and not _leads(drawing, key_path):
            left_out += 1
            continue
        _left_out(drawing, depth + 1, left_out)
        left_out = 0
        comma = SafeString("," if position < last else "")
        _value(drawing, key_path, child, depth + 1, lead=key, tail=comma)
    _left_out(drawing, depth + 1, left_out)
    for missing, mark in _missing(drawing, path, value):
        drawing.placed.add(missing)
        name = missing[len(path) :].lstrip(".")
        ghost = format_html('<span class="j-missing">{}</span>', visible(f"{name}: missing"))
        _line(drawing, depth + 1, format_html("{}{}", ghost, _notes(ABSENT, (mark,))))
    _line(drawing, depth, format_html("{}{}", closer, tail))


def _leads(drawing: _Drawing, path: str) -> bool:
    """Whether a mark is on this path or below it."""
    return path in drawing.marks or path in drawing.marked_prefixes


def _is_shut(drawing: _Drawing, path: str, value: Any) -> bool:
    is_long = isinstance(value, dict | list) and len(value) > _FOCUS_KEPT
    return is_long and not _leads(drawing, path)


def _left_out(drawing: _Drawing, depth: int, number: int) -> None:
    if number:
        _line(drawing, depth, format_html('<span class="j-cut">… {} more</span>', f"{number:,}"))


def _children(
    drawing: _Drawing, path: str, value: dict[str, Any] | list[Any]
) -> Iterator[tuple[str, SafeString, Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            child_path = f"{path}.{key}"
            on_path = " j-path" if _leads(drawing, child_path) else ""
            lead = format_html('<span class="j-key{}">{}</span>: ', on_path, visible(_quoted(key)))
            yield child_path, lead, child
    else:
        for position, child in enumerate(value):
            child_path = f"{path}[{position}]"
            lead = SafeString("")
            if _leads(drawing, child_path):  # only an item that leads to a mark shows its index
                lead = format_html('<span class="j-index j-path">[{}]</span> ', position)
            yield child_path, lead, child


def _missing(
    drawing: _Drawing, path: str, value: dict[str, Any] | list[Any]
) -> Iterable[tuple[str, Mark]]:
    """Marks on members that this object does not have: required or stripped ones."""
    if not isinstance(value, dict) or path not in drawing.marked_prefixes:
        return
    for marked, marks in drawing.marks.items():
        rest = marked.removeprefix(f"{path}.")
        if rest != marked and rest not in value and not re.search(r"[.\[]", rest):
            yield from ((marked, mark) for mark in marks)


def _fits(drawing: _Drawing, path: str, value: dict[str, Any] | list[Any], depth: int) -> bool:
    """Whether a container may stand on one line: only scalars, short, and no mark inside."""
    if path in drawing.marked_prefixes or len(value) > INLINE_WIDTH:
        return False
    children = value.values() if isinstance(value, dict) else value
    if any(isinstance(child, dict | list) and child for child in children):
        return False
    return len(_compact(value)) + 2 * depth <= INLINE_WIDTH


def _line(drawing: _Drawing, depth: int, content: SafeString) -> None:
    if not _is_full(drawing):
        drawing.lines.append(format_html("{}{}", "  " * depth, content))


def _is_full(drawing: _Drawing) -> bool:
    if len(drawing.lines) >= drawing.max_lines:
        drawing.is_cut = True
    return drawing.is_cut


def _scalar(value: Any) -> SafeString:
    match value:
        case Number():
            return format_html('<span class="j-number">{}</span>', visible(value[:MAX_STRING]))
        case Shape():
            return format_html('<span class="j-shape">{}</span>', value)
        case str():
            return format_html('<span class="j-string">{}</span>', _string(value))
        case None | True | False:
            return format_html('<span class="j-word">{}</span>', _compact(value))
        case dict():
            members = ((visible(_quoted(key)), _scalar(child)) for key, child in value.items())
            inner = format_html_join(", ", '<span class="j-key">{}</span>: {}', members)
            return format_html("{{ {} }}", inner) if value else SafeString("{}")
        case _:
            inner = format_html_join(", ", "{}", ((_scalar(child),) for child in value))
            return format_html("[{}]", inner)


def _string(value: str) -> SafeString:
    if len(value) <= MAX_STRING:
        return visible(_quoted(value))
    rest = len(value) - MAX_STRING
    return format_html(
        '{}<span class="j-cut">… {} more characters</span>',
        visible(_quoted(value[:MAX_STRING])),
        f"{rest:,}",
    )


def _marked(shown: SafeString, marks: Sequence[Mark]) -> SafeString:
    if not marks:
        return shown
    kind = "is-warning" if all(mark.is_warning for mark in marks) else "is-error"
    return format_html('<mark class="j-mark {}">{}</mark>', kind, shown)


def _notes(value: Any, marks: Sequence[Mark]) -> SafeString:
    """The notes after a marked value: the code, and the value after or before coercion."""
    notes: list[SafeString] = []
    for mark in marks:
        parts = [format_html("<b>{}</b> {}", mark.code, visible(mark.note))]
        if mark.coerced is not ABSENT and not _same(mark.coerced, value):
            parts.append(format_html("→ {}", inline(mark.coerced)))
        elif mark.received is not ABSENT and not _same(mark.received, value):
            parts.append(format_html("· was {}", inline(mark.received)))
        notes.append(format_html_join(" ", "{}", ((part,) for part in parts)))
    if not notes:
        return SafeString("")
    joined = format_html_join(" · ", "{}", ((note,) for note in notes))
    return format_html('<span class="j-note">{}</span>', joined)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: the text "72.5" is not the number 72.5."""
    return other is not ABSENT and _compact(one) == _compact(other)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _compact(value: Any) -> str:
    match value:
        case Number() | Shape():
            return str(value)
        case str():
            return _quoted(value)
        case dict():
            return "{" + ", ".join(f"{_quoted(k)}: {_compact(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(_compact(child) for child in value) + "]"
        case _:
            return json.dumps(value)
