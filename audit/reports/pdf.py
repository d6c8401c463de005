"""A report as PDF: its layout as JSON into `templates/reports/report.typ`, set by Typst.

Whatever agents wrote reaches the template as strings of that JSON, never as markup; the template
evaluates nothing. Typst runs in this process, reads no file outside the template's folder and
no font but Inter, which lies there, and those it brings along; it has no network.
"""

import json
import re
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Literal

import typst
from django.conf import settings

from audit.reports.compose import lay_out
from audit.reports.queries import Report
from audit.show.text import plain

_FOLDER = Path(settings.BASE_DIR) / "templates" / "reports"
_LONGEST = 400
"""Characters of a text in a PDF: a cell must fit on a page."""

# What Inter and DejaVu Sans Mono have no picture of would be an empty box. Scripts that are
# written from right to left would turn around the line they stand in.
_UNDRAWN = re.compile(
    "[^\\u0020-\\u024f\\u0259\\u02b0-\\u02ff\\u0300-\\u036f\\u0370-\\u0377\\u037a-\\u037f"
    "\\u0384-\\u038a\\u038c\\u038e-\\u03a1\\u03a3-\\u03ff\\u0400-\\u052f\\u1e00-\\u1eff"
    "\\u2000-\\u2064\\u2070\\u2071\\u2074-\\u208e\\u20a0-\\u20bd\\u2190-\\u21ff\\u2200-\\u22ff"
    "\\u2500-\\u25ff]"
)
_RUN = re.compile(r"\S{13,}")
_SIGN = re.compile(r"(?<=[._/:,=\]-])(?=.)")
_BREAK = "\N{ZERO WIDTH SPACE}"


def pdf(report: Report, tenant_name: str) -> bytes:
    """The report on A4, tagged for readers. The same report gives the same bytes."""
    found = _set(report, tenant_name, "pdf")
    assert isinstance(found, bytes)
    return found


def png(report: Report, tenant_name: str) -> list[bytes]:
    """Its pages as pictures, to be looked at."""
    found = _set(report, tenant_name, "png")
    return [found] if isinstance(found, bytes) else found


def _set(report: Report, tenant_name: str, form: Literal["pdf", "png"]) -> bytes | list[bytes]:
    return typst.compile(
        _FOLDER / "report.typ",
        root=_FOLDER,
        font_paths=_fonts(),
        ignore_system_fonts=True,
        format=form,
        sys_inputs={"report": json.dumps(_drawn(asdict(lay_out(report, tenant_name))))},
        timestamp=int(report.created_at.timestamp()),
    )


def _drawn(value: Any) -> Any:
    """The same with texts that can be set: what hides or has no picture is written as escapes."""
    match value:
        case str():
            short = value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
            return _RUN.sub(_breakable, _UNDRAWN.sub(_escape, plain(short)))
        case dict():
            return {name: _drawn(each) for name, each in value.items()}
        case list() | tuple():
            return [_drawn(each) for each in value]
        case _:
            return value


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


def _breakable(found: re.Match[str]) -> str:
    """A long name may be parted after its signs, and else every dozen letters."""
    parts = _SIGN.split(found[0])
    return _BREAK.join(part[n : n + 12] for part in parts for n in range(0, len(part), 12))


@cache
def _fonts() -> typst.Fonts:
    return typst.Fonts(include_system_fonts=False, font_paths=[_FOLDER / "fonts"])
