"""An installation built from files alone, exported, built again elsewhere, and compared."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.declared import write_config
from tests.support.installation import Installation, prepared_installation
from tests.support.management_commands import manage

TENANT: dict[str, Any] = {
    "slug": "acme",
    "name": "ACME",
    "retention": {"payload_days": 90},
    "members": [{"user": "ada@acme", "role": "admin"}, {"user": "vic@acme"}],
    "keys": [{"name": "agents", "scopes": ["ingest"], "secret": {"file": "agents"}}],
    "channels": [
        {"name": "chat", "kind": "slack", "url": {"file": "chat"}},
        {
            "name": "mail",
            "kind": "email",
            "recipients": ["ann@example.com"],
            "sender": "tooltrail@example.com",
            "host": "mail.example",
        },
    ],
    "alert_rules": [
        {
            "name": "Calls fail",
            "condition": {"measure": "failed_share", "alert": 50},
            "channels": ["mail"],
        }
    ],
    "maintenance_windows": [
        {
            "name": "Upgrade",
            "reason": "The catalogue is upgraded.",
            "starts_at": "2026-12-06T02:00:00Z",
            "minutes": 90,
            "rules": ["Calls fail"],
        }
    ],
    "polling_tools": ["status"],
    "saved_views": [
        {"owner": "vic@acme", "name": "Failed", "q": "state:error"},
        {
            "owner": "vic@acme",
            "name": "Slow",
            "q": "sort=duration",
            "page": "traces",
            "shared": True,
        },
    ],
    "boards": [{"name": "Failures", "range": "7d", "panels": [{"shows": "calls", "size": "wide"}]}],
    "reports": {"kinds": ["day"]},
    "sign_in": {"second_factor_roles": ["admin"], "step_up": True, "session_idle_minutes": 30}
    | {"anonymous_links": True},
    "identity_providers": [
        {
            "name": "Acme ID",
            "issuer": "https://id.acme.example",
            "client_id": "tooltrail",
            "secret": {"file": "id"},
            "role_by_group": {"platform": "editor"},
            "subject_claim": "oid",
            "scim": True,
        },
        {
            "name": "Old",
            "issuer": "https://old.acme.example",
            "client_id": "tooltrail",
            "default_role": "viewer",
            "is_disabled": True,
        },
    ],
    "sso_only": {"is_on": False},
    "service_accounts": [{"name": "ci", "is_disabled": True}],
    "price_lists": [
        {
            "holds_from": "2026-11-01",
            "currency": "EUR",
            "prices": [{"tool": "search", "amount": "0.004", "path": "output.rows"}],
        }
    ],
    "tools": [
        {
            "name": "search",
            "description": "Searches.",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
        }
    ],
    "checks_on_arrival": ["search"],
}


@contextmanager
def running_installation() -> Iterator[Installation]:
    """An installation whose database runs, so that no command has to start it."""
    with prepared_installation() as installation:
        installation.postgres.start()
        try:
            yield installation
        finally:
            installation.postgres.stop()


def run(installation: Installation, *arguments: str) -> str:
    completed = manage(*arguments, TOOLTRAIL_VAR=str(installation.var))
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


@pytest.mark.slow
def test_exported_installation_is_built_again(tmp_path: Path) -> None:
    (tmp_path / "chat").write_text("https://hooks.slack.com/services/T/B/swordfish")
    (tmp_path / "id").write_text("the client's swordfish")
    file = str(write_config(tmp_path, TENANT))
    with running_installation() as first, running_installation() as second:
        run(first, "apply", file)
        exported = run(first, "export-config", "--format", "json")
        assert "swordfish" not in exported

        folder = tmp_path / "again"
        secrets = folder / "secrets" / "acme"
        secrets.mkdir(parents=True)
        (folder / "config.json").write_text(exported)
        (secrets / "channel-chat").write_bytes((tmp_path / "chat").read_bytes())
        (secrets / "identity-Acme-ID-b3b9b121").write_bytes((tmp_path / "id").read_bytes())
        (secrets / "key-agents").write_bytes((tmp_path / "agents").read_bytes())
        run(second, "apply", str(folder / "config.json"))

        assert json.loads(run(second, "export-config", "--format", "json")) == json.loads(exported)
        keys = [
            [key["key_id"] for key in json.loads(run(each, "key", "list", "acme", "--json"))]
            for each in (first, second)
        ]
        assert keys[0] == keys[1]
        for each, files in ((first, file), (second, str(folder / "config.json"))):
            again = json.loads(run(each, "apply", files, "--prune", "--json"))
            assert [one["changes"] for one in again["tenants"] if one["changes"]] == []
            assert again["tenants"]
