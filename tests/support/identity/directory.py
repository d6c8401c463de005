"""A company's directory, which sends its people and groups by SCIM."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.test import Client

if TYPE_CHECKING:
    from tenants.models import IdentityProvider, Scope
    from tests.support.factories import Cast

ISSUER = "https://id.acme.example"


@dataclass(frozen=True)
class Directory:
    """A provider's directory with its key."""

    row: "IdentityProvider"
    key: str

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer to a request."""
        return Client().generic(
            method,
            f"/scim/v2/{self.row.pk}/{path}",
            "" if body is None else _json(body),
            content_type="application/scim+json",
            headers={"Authorization": f"Bearer {self.key}", **headers},
        )

    def add_user(self, known_as: str, /, **members: Any) -> str:
        """Send a person, who has this name and this subject. Returns the id."""
        body = {"schemas": [USER], "userName": known_as, "externalId": known_as, "active": True}
        answer = self.send("POST", "Users", body | members)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["id"])

    def add_group(self, name: str, *members: str) -> str:
        """Send a group. Returns the id."""
        people = [{"value": each} for each in members]
        body = {"schemas": [GROUP], "displayName": name, "members": people}
        answer = self.send("POST", "Groups", body)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["id"])

    def patch(self, path: str, *operations: dict[str, Any], **headers: str) -> Any:
        """The answer to a PATCH."""
        body = {"schemas": [PATCH], "Operations": list(operations)}
        return self.send("PATCH", path, body, **headers)


USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def make_directory(
    cast: "Cast", *, issuer: str = ISSUER, scope: "Scope | None" = None, **more: Any
) -> Directory:
    """A provider of a tenant with SCIM, and a key for it."""
    from tenants.identity.providers import add_provider
    from tenants.identity.wanted import Wanted
    from tenants.keys import create_key
    from tenants.models import Role, Scope
    from tenants.scope import tenant_scope

    roles = {"staff": Role.VIEWER, "platform": Role.EDITOR, "owners": Role.ADMIN}
    wanted = Wanted(
        name="Acme ID",
        issuer=issuer,
        client_id="tooltrail",
        role_by_group=roles,
        scim=True,
        **more,
    )
    with tenant_scope(cast.tenant.pk):
        row = add_provider(cast.tenant, cast.admin, wanted)
        key = create_key(cast.tenant, "directory", [scope or Scope.SCIM], created_by=cast.admin)[1]
    return Directory(row, key)


def _json(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body)
