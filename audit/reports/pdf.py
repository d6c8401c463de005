"""Reports as PDF: Typst renders a template of `templates/reports` with a document as JSON.

Texts from agents reach the template as strings of that JSON, never as markup; the template
evaluates nothing. Typst runs in this process and has no network. It reads no file outside the
template's folder, and uses no fonts except Inter from that folder and its own built-in ones.

Typst is the extra `pdf`, of 81 MB: whoever asks for a PDF asks `is_installed` before.
"""

import json
import re
from dataclasses import asdict
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from audit.reports.compose import lay_out
from audit.reports.queries import Report
from audit.show.text import plain

if TYPE_CHECKING:
    import typst

MISSING = (
    "The extra pdf is not installed on this server. An operator adds it (uv sync --extra pdf, or"
    " pip install 'tooltrail-server[pdf]') and restarts the server. The page, CSV and JSON have the"
    " same figures."
)
_FOLDER = Path(settings.BASE_DIR) / "templates" / "reports"
_LONGEST = 400
"""The most characters of a text in a PDF: a cell must fit on a page."""

# Characters without a glyph in Inter and DejaVu Sans Mono would be empty boxes. Right-to-left
# scripts would reverse the line they are in.
_UNDRAWN = re.compile(
    "[^\\u0020-\\u024f\\u0259\\u02b0-\\u02ff\\u0300-\\u036f\\u0370-\\u0377\\u037a-\\u037f"
    "\\u0384-\\u038a\\u038c\\u038e-\\u03a1\\u03a3-\\u03ff\\u0400-\\u052f\\u1e00-\\u1eff"
    "\\u2000-\\u2064\\u2070\\u2071\\u2074-\\u208e\\u20a0-\\u20bd\\u2190-\\u21ff\\u2200-\\u22ff"
    "\\u2500-\\u25ff]"
)
_RUN = re.compile(r"\S{13,}")
_SIGN = re.compile(r"(?<=[._/:,=\]-])(?=.)")
_BREAK = "\N{ZERO WIDTH SPACE}"


def is_installed() -> bool:
    """Whether the extra is installed."""
    return find_spec("typst") is not None


def pdf(report: Report, tenant_name: str) -> bytes:
    """The report as A4 PDF, tagged for screen readers. The same report gives the same bytes."""
    return typeset("report.typ", asdict(lay_out(report, tenant_name)), report.created_at)


def typeset(template: str, values: dict[str, Any], at: datetime) -> bytes:
    """A template with its values as PDF. `at` is the time that the file has of itself."""
    import typst  # 5 MB of memory that a process without PDFs does not need

    document = typst.compile(
        _FOLDER / template,
        root=_FOLDER,
        font_paths=_fonts(),
        ignore_system_fonts=True,
        format="pdf",
        sys_inputs={"report": json.dumps(_drawn(values))},
        timestamp=int(at.timestamp()),
    )
    assert isinstance(document, bytes)  # only image formats give a list of pages
    return document


def _drawn(value: Any) -> Any:
    """The value with printable texts: invisible characters and those without glyph are escaped."""
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


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


def _breakable(match: re.Match[str]) -> str:
    """A long name with break points after its punctuation, otherwise every 12 characters."""
    parts = _SIGN.split(match[0])
    return _BREAK.join(part[n : n + 12] for part in parts for n in range(0, len(part), 12))


@cache
def _fonts() -> "typst.Fonts":
    import typst

    return typst.Fonts(include_system_fonts=False, font_paths=[_FOLDER / "fonts"])
