"""The SDK registers tools: first the digest, then the contract, then nothing."""

from pathlib import Path

import pytest
from tooltrail import Trail
from tooltrail.announcement import Announcement, Announcer
from tooltrail.errors import ToolNameTaken
from tooltrail.transport import Transport

from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.server import LiveServer
from tools_registry.changes import timeline
from tools_registry.models import Tool, ToolVersion


def get_weather(city: str) -> dict[str, float]:
    """Tells the weather.

    city: as on a map
    """
    return {"celsius": 21.5}


def test_decorated_function_is_registered(live_server: LiveServer, acme: Cast) -> None:
    _, key = create_key(acme.tenant, "executor", [Scope.REGISTRY])
    transport = Transport(live_server.url, key, "test")
    announcement = Announcement(fn=get_weather, name="get_weather", meta={"team": "maps"})
    for _ in range(2):
        announcer = Announcer()
        announcer.add(announcement)
        announcer.announce(transport)
    transport.close()
    with tenant_scope(acme.tenant.id):
        version = ToolVersion.objects.select_related("tool").get()
    assert (version.tool.name, version.number) == ("get_weather", 1)
    assert version.digest == announcement.digest
    assert version.input_schema["properties"]["city"]["type"] == "string"
    assert version.meta == {"team": "maps"}


def test_strict_mode_raises_with_the_diff_from_the_registry(
    live_server: LiveServer, acme: Cast, tmp_path: Path
) -> None:
    _, key = create_key(acme.tenant, "executor", [Scope.REGISTRY, Scope.INGEST])
    trail = Trail(live_server.url, key, spool_dir=tmp_path, register="strict")
    first, second = (trail.tool(description=text)(get_weather) for text in ("a", "b"))
    assert first("London") == {"celsius": 21.5}
    with pytest.raises(ToolNameTaken, match="on_collision is throw") as raised:
        second("London")
    assert [change["keyword"] for change in raised.value.diff["changes"]] == ["description"]
    trail.close(5)
    with tenant_scope(acme.tenant.id):
        kinds = [change.kind for change in timeline(Tool.objects.get(), size=9)]
    assert kinds == ["refused", "published"]
