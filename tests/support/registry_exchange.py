"""Export and import of a registry, on the page and with a key."""

import io
import json
from typing import Any

from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope, Tenant, User
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.registered_tools import register_tool
from tools_registry import states
from tools_registry.changes import Publisher
from tools_registry.exchange.export import export_registry
from tools_registry.models import Tool
from tools_registry.tools import describe_tool
from tools_registry.versions import find_version


def fill_registry(cast: Cast) -> None:
    """Give a tenant a registry that uses every feature of the export format."""
    register_tool(cast)
    tool = register_tool(cast, description="b", on_collision="replace", meta={"team": "maps"})
    register_tool(cast, description="c", on_collision="replace")
    register_tool(cast, name="other", trusted=True, output_schema={"const": "\0"})
    by = Publisher(cast.admin)
    description = {
        "owner": "Ann",
        "tags": ["maps"],
        "link": "https://a.example/",
        "meta": {"tier": 1},
    }
    with tenant_scope(cast.tenant.id):
        describe_tool(tool, description, by)
        versions = {n: find_version(tool, n) for n in (1, 2)}
        assert versions[1] and versions[2]
        states.retire(versions[1], by)
        states.set_current(versions[2], by)
        states.deprecate(versions[2], by)
        Tool(tenant=cast.tenant, name="without").save()


def exported_registry(tenant: Tenant) -> Any:
    """The parsed export of a tenant's registry."""
    return json.loads(b"".join(export_registry(tenant.id)))


def without_history(document: Any) -> Any:
    """An export without the times and authors of its versions."""
    for tool in document["tools"]:
        for version in tool["versions"]:
            del version["published_at"], version["published_by"]
    return document


def client(user: User) -> Client:
    """A signed-in test client."""
    signed_in = Client()
    signed_in.force_login(user)
    return signed_in


def upload_registry(user: User, document: Any, **more: Any) -> str:
    """Upload a document for import; the address of its preview."""
    file = io.BytesIO(json.dumps(document).encode())
    file.name = "tools.json"
    answer = client(user).post("/tools/import", {"file": file, **more})
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"])


def confirm_import(user: User, address: str, **data: str) -> Any:
    """Confirm a previewed import; the answer."""
    page = client(user).get(f"{address}?as={data['as']}").content.decode()
    plan = page.split('name="plan" value="')[1].split('"')[0]
    return client(user).post(f"{address}/confirm", {"plan": plan, **data})


def client_with_key(cast: Cast, scope: Scope = Scope.REGISTRY) -> Client:
    """A test client that sends an API key with this scope."""
    _, key = create_key(cast.tenant, "executor", [scope])
    return Client(headers={"Authorization": f"Bearer {key}"})
