"""Files of configuration for tests."""

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command
from ruamel.yaml import YAML


def write_config(folder: Path, *tenants: dict[str, Any], name: str = "config.json") -> Path:
    """Write a file with these tenants."""
    path = folder / name
    path.write_text(json.dumps({"version": 1, "tenants": tenants}))
    return path


def apply(*arguments: object) -> list[dict[str, Any]]:
    """Run `manage.py apply --json`; the outcome of each tenant. Raises CommandError."""
    out = io.StringIO()
    call_command("apply", *map(str, arguments), "--json", stdout=out)
    outcomes: list[dict[str, Any]] = json.loads(out.getvalue())["tenants"]
    return outcomes


def changes_of(*arguments: object) -> list[str]:
    """Run `manage.py apply`; what it changed, as `create key agents`, without ids of keys."""
    return [
        f"{one['action']} {one['kind']} {one['name'].partition(' (')[0]}".rstrip()
        for outcome in apply(*arguments)
        for one in outcome["changes"]
    ]


def export(slug: str) -> dict[str, Any]:
    """The exported tenant."""
    out = io.StringIO()
    call_command("export-config", slug, stdout=out)
    document = YAML(typ="safe", pure=True).load(out.getvalue())
    assert document["version"] == 1
    [tenant] = document["tenants"]
    exported: dict[str, Any] = tenant
    return exported
