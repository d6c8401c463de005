"""Every route of the product, and how a stranger knocks at it.

A route that is missing here fails `test_walk.py`, which says what to add.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, URLResolver, get_resolver

from tenants.models import Scope
from tests.isolation.world import World


@dataclass(frozen=True)
class Object:
    """A route that names something of a tenant: 404 for anybody else."""

    path: Callable[[World], str]
    """The address of that thing in a given world."""
    scope: Scope | None = None
    """Of the API key, for an API route."""
    is_read: bool = True
    """Whether GET shows it, so that its own tenant's admin is shown the canary."""


@dataclass(frozen=True)
class Listing:
    """A route that names nothing: everybody sees their own, and never the canary."""

    path: str
    scope: Scope | None = None
    shows_canary: bool = True
    """Whether its own tenant's admin is shown the canary by a GET."""
    data: Callable[[World], Any] = field(default=lambda world: {})
    """What a POST carries: things of the world that the stranger may have heard of."""
    content_type: str = "application/json"
    """Of a POST to an API route."""


@dataclass(frozen=True)
class Open:
    """A route for everybody that shows nothing of any tenant; `why`."""

    path: str
    why: str


Visit = Object | Listing | Open

ROUTES: dict[str, Visit] = {
    # pages of audit
    "": Open("/", "leads to the traces"),
    "traces/": Listing("/traces/"),
    "traces/<text:trace_id>": Object(lambda world: f"/traces/{world.canary}"),
    "calls/<day:started_on>/<uuid:invocation_id>": Object(lambda world: _call(world)),
    "calls/<day:started_on>/<uuid:invocation_id>/<slug:kind>": Object(
        lambda world: _call(world) + "/start"
    ),
    # pages of the registry
    "tools/": Listing("/tools/"),
    "tools/find": Object(lambda world: f"/tools/find?name={quote(world.canary)}", is_read=False),
    "tools/<uuid:pk>": Object(lambda world: f"/tools/{world.tool_id}"),
    "tools/<uuid:pk>/<int:number>": Object(lambda world: f"/tools/{world.tool_id}/1"),
    # sign-in and settings
    "login": Open("/login", "signing in"),
    "logout": Open("/logout", "signing out"),
    "switch-tenant": Object(lambda world: "/switch-tenant", is_read=False),
    "settings/keys": Listing("/settings/keys"),
    "settings/keys/<uuid:pk>/revoke": Object(
        lambda world: f"/settings/keys/{world.api_key.pk}/revoke", is_read=False
    ),
    "settings/members": Listing(
        "/settings/members", data=lambda world: {"username": "", "role": "admin"}
    ),
    "settings/members/<uuid:pk>/role": Object(
        lambda world: f"/settings/members/{world.membership.pk}/role", is_read=False
    ),
    "settings/members/<uuid:pk>/remove": Object(
        lambda world: f"/settings/members/{world.membership.pk}/remove", is_read=False
    ),
    "settings/password": Listing("/settings/password"),
    "theme": Open("/theme", "light or dark, in a cookie"),
    # Django's admin
    "admin/": Listing("/admin/"),
    "admin/jsi18n/": Listing("/admin/jsi18n/", shows_canary=False),
    r"admin/^(?P<app_label>tools_registry)/$": Listing("/admin/tools_registry/"),
    "admin/tools_registry/tool/": Listing("/admin/tools_registry/tool/"),
    "admin/tools_registry/tool/add/": Listing("/admin/tools_registry/tool/add/"),
    "admin/tools_registry/tool/<path:object_id>/change/": Object(
        lambda world: f"/admin/tools_registry/tool/{world.tool_id}/change/"
    ),
    # the API
    "api/v1/": Open("/api/v1/", "the API's name, for reversing its routes"),
    "api/v1/openapi.json": Open("/api/v1/openapi.json", "the API's description"),
    "api/v1/events": Listing(
        "/api/v1/events",
        Scope.INGEST,
        shows_canary=False,
        data=lambda world: make_event(world),
        content_type="application/x-ndjson",
    ),
    "api/v1/summary": Listing("/api/v1/summary", Scope.READ, shows_canary=False),
    "api/v1/tools": Listing(
        "/api/v1/tools",
        Scope.REGISTRY,
        shows_canary=False,
        data=lambda world: {"tools": [{"name": world.canary, "digest": "sha256:" + "0" * 64}]},
    ),
}


def make_event(world: World) -> bytes:
    """An event that claims to be the start of the world's own call, without its canary."""
    event = {
        "type": "toolExecutionStart",
        "invocation_id": str(world.call_id),
        "trace_id": "a stranger's",
        "tool_name": "stranger",
        "call_id": "stranger",
        "started_at": world.at.isoformat(),
        "args": {},
    }
    return json.dumps(event).encode() + b"\n"


def _call(world: World) -> str:
    return f"/calls/{world.at.date()}/{world.call_id}"


def all_routes() -> dict[str, URLPattern]:
    """Every pattern of the site map by its whole route, as Django writes it."""
    found: dict[str, URLPattern] = {}

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> None:
        for one in patterns:
            route = prefix + str(one.pattern)
            if isinstance(one, URLResolver):
                walk(one.url_patterns, route)
            else:
                found[route] = one

    walk(get_resolver().url_patterns, "")
    return found
