"""How Sphinx builds the site: Furo's pages without anything inline.

The module is also an extension of Sphinx.
"""

from pathlib import Path
from typing import Any

from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

from config.version import VERSION

_HERE = Path(__file__).resolve().parent

SETTINGS: dict[str, Any] = {
    "project": "Tooltrail",
    "version": VERSION,
    "release": VERSION,
    "extensions": ["myst_parser", "docs.site.sphinx_settings"],
    "root_doc": "index",
    "language": "en",
    "nitpicky": True,
    "smartquotes": False,
    "highlight_language": "text",
    "myst_heading_anchors": 4,  # the same names as on a forge
    "templates_path": [str(_HERE / "templates")],
    "html_theme": "furo",
    "html_title": "Tooltrail",
    "html_static_path": [str(_HERE / "static")],
    "html_css_files": ["docs.css"],
    "html_favicon": str(_HERE.parents[1] / "static" / "img" / "mark.svg"),
    "html_logo": str(_HERE.parents[1] / "static" / "img" / "mark.svg"),
    "html_sidebars": {
        "**": [
            "sidebar/brand.html",
            "sidebar/search.html",
            "sidebar/scroll-start.html",
            "sidebar/product.html",
            "sidebar/navigation.html",
            "sidebar/scroll-end.html",
        ]
    },
    "html_show_sphinx": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_copyright": False,
    "html_use_index": False,
    "html_domain_indices": False,
    # The table of docs/tampering.md, which a test writes, has its headings at the third level.
    "suppress_warnings": ["myst.header"],
}
"""The settings that a `conf.py` would hold."""


def setup(application: Sphinx) -> dict[str, bool]:
    """Tell Sphinx how to colour lines of JSON, and how to finish a page. Sphinx calls it."""
    application.add_lexer("ndjson", JsonLexer)
    application.connect("html-page-context", _reach_by_keys)
    return {"parallel_read_safe": True}


def _reach_by_keys(
    application: Sphinx, name: str, template: str, context: dict[str, Any], document: object
) -> None:
    """Let keys reach and scroll code and tables that are wider than the page (WCAG 2.1.1)."""
    if "body" in context:
        for tag, rest in (("<pre", ">"), ("<div", ' class="table-wrapper')):
            context["body"] = context["body"].replace(tag + rest, f'{tag} tabindex="0"{rest}')
