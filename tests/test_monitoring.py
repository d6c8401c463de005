"""What docs/monitoring offers to operators uses the names and labels that `/metrics` serves."""

import json
import re
from collections import defaultdict

import pytest
from django.test import Client

from tests.support.documents import ROOT

FOLDER = ROOT / "docs" / "monitoring"
RULES = (FOLDER / "prometheus-rules.yaml").read_text()
DASHBOARD = json.loads((FOLDER / "grafana-dashboard.json").read_text())
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
_OF_SCRAPES = {"instance", "job"}
"""Labels that Prometheus adds."""
_SERIES = re.compile(r"\b(tooltrail_\w+)(?:\{([^}]*)\})?")
_BY = re.compile(r"\bby \((\w+(?:, \w+)*)\)")


def served() -> dict[str, set[str]]:
    """The labels of each series of `/metrics`."""
    answer = Client().get("/metrics")
    assert answer.status_code == 200
    labels: dict[str, set[str]] = defaultdict(set)
    for line in answer.content.decode().splitlines():
        if match := re.match(r"(\w+)(?:\{(.*)\})? ", line):
            labels[match[1]] |= set(re.findall(r"(\w+)=", match[2] or ""))
    return labels


def rules() -> list[tuple[str, str, str]]:
    """Name, expression and duration ('': at once) of each rule."""
    found = []
    for block in RULES.split("- alert: ")[1:]:
        expression = re.search(r"expr: >-\n +(.+)\n", block)
        assert expression is not None, block
        duration = re.search(r"for: (\w+)", block)
        found.append((block.split()[0], expression[1], duration[1] if duration else ""))
    return found


def expressions() -> list[str]:
    """All expressions of both files."""
    of_panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [expression for _, expression, _ in rules()] + of_panels


@pytest.mark.slow
def test_files_use_only_what_is_served() -> None:
    series = served()
    used = expressions()
    assert len(rules()) == RULES.count("expr:") > 10
    for expression in used:
        groups = {name for names in _BY.findall(expression) for name in names.split(", ")}
        named = _SERIES.findall(expression)
        for name, matchers in named:
            assert name in series, expression
            wanted = set(re.findall(r"(\w+)(?==)", matchers)) | groups
            assert wanted <= series[name] | _OF_SCRAPES, expression
        assert named or "probe_success" in expression


def test_unknown_name_would_be_noticed() -> None:
    series = served()
    assert "tooltrail_events_total" in series
    assert series["tooltrail_events_total"] == {"outcome"}
    assert series["tooltrail_request_seconds_bucket"] == {"le"}
    assert "tooltrail_events" not in series


@pytest.mark.parametrize(("name", "expression", "duration"), rules())
def test_operations_page_lists_each_rule(name: str, expression: str, duration: str) -> None:
    words = {"m": "min", "h": "h"}
    after = f" for {duration[:-1]} {words[duration[-1]]}" if duration else ""
    listed = f"| `{expression}`{after} |".replace('"4..|5.."', r'"4..\|5.."')
    assert listed in OPERATIONS, name


def test_dashboard_can_be_imported() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert [one["name"] for one in DASHBOARD["templating"]["list"]] == ["datasource", "instance"]
    places = [panel["gridPos"] for panel in panels]
    cells = {(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in [p["y"]]}
    assert len(cells) == sum(place["w"] for place in places), "panels overlap"
    assert all(place["x"] + place["w"] <= 24 for place in places)
