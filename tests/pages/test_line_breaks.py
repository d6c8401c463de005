"""Line breaks in a template do not become line breaks on the page."""

import re
from pathlib import Path

import pytest

from config.instance import BASE_DIR

TEMPLATES = sorted((BASE_DIR / "templates").rglob("*.html"))
# The elements whose style keeps white space (`white-space: pre-line` and `pre-wrap`). HTML itself
# leaves out a line break directly after <pre> and <textarea>.
_KEEPS = re.compile(
    r"<(?:pre|textarea)\b[^>]*>\n?[ \t]+\{\{"
    r'|<(?:p|blockquote)\s+class="(?:free|[^"]*\bdescription)"[^>]*>\s*\n\s*\{\{'
)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_text_with_its_own_line_breaks_begins_beside_its_tag(template: Path) -> None:
    """Otherwise the page shows an empty line above it."""
    assert not _KEEPS.findall(template.read_text())


def test_break_after_the_tag_would_be_found() -> None:
    assert _KEEPS.search('<p class="free">\n    {{ message|visible }}</p>')
    assert _KEEPS.search('<blockquote class="free">\n{{ reason }}')
    assert _KEEPS.search('<pre class="raw">\n  {{ text }}')
    assert not _KEEPS.search("<textarea>\n{{ text }}")
    assert not _KEEPS.search('<p class="free">{{ message }}</p>')
