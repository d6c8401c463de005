"""Shows a line as it was received: as text, or as bytes if it is not text.

Pure. Also shows where the line violates the contract: at which byte, or at which member.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from pydantic.alias_generators import to_snake
from tooltrail import events

from audit.events.body import Line
from audit.events.candidates import Candidate, read_lines
from audit.events.decode import reason_in_words
from audit.events.json_values import parse
from audit.events.limits import LimitExceededError
from audit.show.json_tree import Mark, Tree, draw

_COLUMN = re.compile(r"at line 1 column (\d+)$")
_HEX_ROW = 16
_MARKS_MAX = 50


@dataclass(frozen=True, slots=True)
class RawView:
    """A line to show. It has either `hexdump`, or `text`, with `tree` if it is JSON."""

    text: str | None
    """The line if it is UTF-8; otherwise `hexdump` shows its bytes."""
    hexdump: str
    tree: Tree | None
    """The line as JSON, with contract violations marked in place."""
    break_at: int | None
    """If the bytes are not JSON: the index of the first invalid one."""
    before_break: str
    after_break: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of reading a line now. `candidate` is the event, as if it had arrived alone.

    Valid definitions of tools have neither a candidate nor a code.
    """

    candidate: Candidate | None
    code: str = ""
    message: str = ""
    marks: dict[str, list[Mark]] = field(default_factory=dict)


def judge(raw: bytes, batch_id: UUID, now: datetime) -> Verdict:
    """Read a line as ingest does, as if it were sent alone. Depends on no stored event."""
    try:
        reading = read_lines([Line(1, raw)], batch_id, now)
    except LimitExceededError as error:
        return Verdict(None, error.code, error.message)
    if reading.candidates:
        return Verdict(reading.candidates[0])
    if reading.sightings:
        return Verdict(None)
    (refused,) = reading.rejections
    marks = _broken_members(raw) if refused.code == "invalid_event" else {}
    return Verdict(None, refused.code, refused.message, marks)


def view(raw: bytes, marks: dict[str, list[Mark]]) -> RawView:
    """The line to show. `marks` are those of `judge`."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before, after = (_lossy(part) for part in _around(raw, error.start))
        return RawView(
            text=None,
            hexdump=hexdump(raw),
            tree=None,
            break_at=error.start,
            before_break=before,
            after_break=after,
        )
    try:
        return RawView(
            text=text,
            hexdump="",
            tree=draw(parse(raw), marks),
            break_at=None,
            before_break="",
            after_break="",
        )
    except (ValueError, RecursionError):
        at = _breaking_byte(raw)
        before, after = ("", "") if at is None else (_lossy(part) for part in _around(raw, at))
        return RawView(
            text=text, hexdump="", tree=None, break_at=at, before_break=before, after_break=after
        )


def hexdump(raw: bytes) -> str:
    """Bytes as rows of sixteen: offset, hexadecimal, ASCII."""
    rows: list[str] = []
    for at in range(0, len(raw), _HEX_ROW):
        part = raw[at : at + _HEX_ROW]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        rows.append(f"{at:08x}  {part.hex(' '):<{3 * _HEX_ROW - 1}}  {shown}")
    return "\n".join(rows)


def excerpt(raw: bytes) -> str:
    """The beginning of a line as one line of text, whatever its bytes are."""
    return " ".join(_lossy(raw).split())


def _lossy(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _around(raw: bytes, at: int) -> tuple[bytes, bytes]:
    return raw[max(0, at - 60) : at], raw[at : at + 30]


def _breaking_byte(raw: bytes) -> int | None:
    try:
        events.EVENT.validate_json(raw)
    except ValidationError as error:
        message = error.errors(include_url=False, include_input=False)[0]["msg"]
        column = _COLUMN.search(message)
        if column is not None:
            return len(raw) if "EOF" in message else int(column[1]) - 1
    return None


def _broken_members(raw: bytes) -> dict[str, list[Mark]]:
    try:
        events.EVENT.validate_json(raw)
    except ValidationError as error:
        marks: dict[str, list[Mark]] = {}
        reasons = error.errors(include_url=False, include_input=False, include_context=False)
        try:
            document = parse(raw)
        except ValueError:
            return {}
        for each in reasons[:_MARKS_MAX]:
            mark = Mark(code=each["type"], note=reason_in_words(each))
            marks.setdefault(_path(each["loc"][1:], document), []).append(mark)
        return marks
    return {}


def _path(location: Sequence[Any], document: Any) -> str:
    """The path as the line itself writes it, as errors of the contract name camelCase members."""
    path = "$"
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
            document = document[step] if isinstance(document, list) else None
            continue
        name, known = str(step), document if isinstance(document, dict) else {}
        name = name if name in known else to_snake(name)
        path += f".{name}"
        document = known.get(name)
    return path
