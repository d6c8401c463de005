"""A program that uses the API with a key of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope, Tenant, User


@dataclass(frozen=True)
class Program:
    """The tenant, and the text of the key."""

    tenant: Tenant
    key: str

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The response to a request of `/api/v1/<path>`."""
        return Client(enforce_csrf_checks=True).generic(
            method,
            f"/api/v1/{path}",
            b"" if body is None else json.dumps(body).encode(),
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.key}", **(headers or {})},
        )

    def get(self, path: str) -> Any:
        """The JSON of a GET that succeeds."""
        return self._succeeded(self.send("GET", path))

    def do(self, path: str, body: Any = None, method: str = "POST") -> Any:
        """The JSON of an act that succeeds."""
        return self._succeeded(self.send(method, path, body))

    def refused(self, path: str, body: Any = None, method: str = "POST") -> tuple[int, str]:
        """Status and code of an act that does not."""
        answer = self.send(method, path, body)
        assert answer["Content-Type"] == "application/problem+json", answer.content
        return answer.status_code, answer.json()["code"]

    def _succeeded(self, answer: Any) -> Any:
        assert answer.status_code in {200, 201}, answer.content.decode()
        return answer.json()


def program(tenant: Tenant, *scopes: Scope, owner: User | None = None, name: str = "ci") -> Program:
    """A program whose key its owner made, with these scopes; without any: all."""
    return Program(tenant, create_key(tenant, name, scopes or list(Scope), created_by=owner)[1])
