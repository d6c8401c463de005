"""The SDK and the registry understand each other: digest first, then whole, then nothing."""

from tooltrail.announcement import Announcement, Announcer
from tooltrail.transport import Transport

from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.factories import Cast
from tests.server import LiveServer
from tools_registry.models import ToolVersion


def get_weather(city: str) -> dict[str, float]:
    """Tells the weather.

    city: as on a map
    """
    return {"celsius": 21.5}


def test_a_decorated_function_is_in_the_registry(live_server: LiveServer, acme: Cast) -> None:
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
