"""Each verb of the audit log belongs to a group that its page offers."""

import ast
import re
from collections.abc import Iterator

import pytest

from audit.queries.actions import VERBS
from config.instance import BASE_DIR

_VERB = re.compile(r"[a-z_]+\.[a-z_]*")


def recorded_verbs() -> Iterator[str]:
    """The verbs, or their beginnings, in calls of functions that record actions."""
    for package in ("config", "tenants", "tools_registry", "audit"):
        for file in (BASE_DIR / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and "record" in ast.unparse(node.func):
                    given = [*node.args, *(each.value for each in node.keywords)]
                    yield from (text for each in given if (text := _text_of(each)))


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr) and node.values:
        node = next(iter(node.values))
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) and _VERB.fullmatch(text) else ""


@pytest.mark.slow
def test_every_verb_is_in_a_group() -> None:
    verbs = set(recorded_verbs())
    assert len(verbs) > 50
    assert [verb for verb in verbs if not verb.startswith(tuple(VERBS))] == []
    assert list(VERBS.values()) == sorted(VERBS.values(), key=str.lower)
