"""Render the chart with Helm's engine and compare the objects with Kubernetes' schemas.

Runs in an environment of its own (`uv run --with …`), because Helm's library and the schemas are
as large as everything else the tests need. Reads a list of values from standard input, and prints
for each {objects: […], problems: […]}, or {refused: …}.
"""

import json
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import yaml

KUBERNETES = ("1.29", "1.33", "1.37")


def render(chart: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The objects of the chart with these values, and what a schema says against each."""
    try:
        chart.validate_schema(values)
        texts = chart.render(values, name="trail", namespace="observability")
    except helm_python.HelmError as error:
        return {"refused": str(error)}
    objects = [
        each
        for name, text in texts.items()
        if name.endswith(".yaml")
        for each in yaml.safe_load_all(text)
        if each
    ]
    problems = []
    for each in objects:
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{each['kind']} in {version}: {error.path}: {error.message}")
    return {"objects": objects, "problems": problems}


def main() -> None:
    """Render the chart named on the command line with each of the values."""
    folder = Path(sys.argv[1])
    errors = helm_python.lint(str(folder))["errors"]
    assert not errors, errors
    with helm_python.Chart.load(str(folder)) as chart:
        json.dump([render(chart, values) for values in json.load(sys.stdin)], sys.stdout)


main()
