"""`POST /mcp`: MCP's Streamable HTTP, without streams and without state.

Every answer is JSON, as no tool sends anything before its result. Programs send a key as for the
API; people send an access token to `/mcp/<tenant>` (`tenants.identity.resource`).
Pages of other origins are refused, as MCP requires (a name that is rebound to this host).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from audit.mcp import protocol
from audit.mcp.caller import Caller, McpRequest
from audit.mcp.methods import answer
from audit.mcp.protocol import RPCError
from config.http.errors import RETRY_AFTER_SECONDS
from config.http.problems import document, problem
from config.postgresql.schema import why_unavailable
from tenants.api_auth import ApiKeyAuth, answer_refusal
from tenants.identity.resource import TokenRefused, find_resource, let_in
from tenants.keys import KeyRefused
from tenants.models import Scope

BODY_MAX_BYTES = 200_000
_AUTH = ApiKeyAuth(Scope.READ)


@csrf_exempt
def serve_keys(request: HttpRequest) -> HttpResponse:
    """Answer the messages of an MCP client with an API key."""
    return _serve(request, _AUTH)


@csrf_exempt
def serve_people(request: HttpRequest, slug: str) -> HttpResponse:
    """Answer the messages of an MCP client with an access token of a tenant's provider."""

    def authenticate(request: HttpRequest) -> Caller:
        resource = find_resource(request, slug)
        if resource is None:
            raise TokenRefused("not_found", "No MCP client gets in here with an access token.")
        return let_in(request, resource)

    return _serve(request, authenticate)


def _serve(request: HttpRequest, authenticate: Callable[[HttpRequest], Caller]) -> HttpResponse:
    if request.method != "POST":
        return problem(
            "method_not_allowed",
            "Send messages with POST. The server opens no stream.",
            headers={"Allow": "POST"},
        )
    if not _is_own_origin(request):
        return problem("forbidden", "Pages of other origins may not use /mcp.")
    try:
        request.auth = authenticate(request)  # type: ignore[attr-defined]  # as ninja does
        response = _respond(request)  # type: ignore[arg-type]  # it knows its caller now
    except KeyRefused as refusal:
        response = answer_refusal(request, refusal)
    except TokenRefused as refusal:
        # Clients show a person the message of an error of JSON-RPC, and nothing of a problem.
        about = document(refusal.code, refusal.message)
        error = RPCError(protocol.REFUSED, refusal.message, about)
        response = _json(protocol.failure(None, error), about["status"], refusal.headers)
    except (OperationalError, InterfaceError) as error:
        response = problem(
            "unavailable",
            f"{why_unavailable(error)} Try again.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    response["Cache-Control"] = "no-store"
    return response


def _respond(request: McpRequest) -> HttpResponse:
    if request.content_type != "application/json":
        return problem("media_type", "Send application/json.")
    body = request.read(BODY_MAX_BYTES + 1)
    if len(body) > BODY_MAX_BYTES:
        return problem("too_large", f"The body exceeds {BODY_MAX_BYTES:,} bytes.")
    try:
        version = protocol.version_of(request.headers.get("MCP-Protocol-Version"))
        values, is_batch = protocol.messages_in(body, version)
    except RPCError as error:
        return _json(protocol.failure(None, error), error.status)
    answers = []
    status, headers = 200, dict[str, str]()
    for value in values:
        try:
            message = protocol.read(value, version, request.headers)
            result = answer(request, message)
            if result is not None:
                answers.append(protocol.success(message, result))
                if message.method == "initialize":
                    session = protocol.new_session(message.client, message.client_version)
                    headers["Mcp-Session-Id"] = session
        except RPCError as error:
            number = protocol.id_of(value)
            answers.append(protocol.failure(number, error))
            # Clients with a handshake take 404 for the end of their session.
            if not is_batch and (number is None or version == protocol.LATEST):
                status = error.status
    if not answers:
        return HttpResponse(status=202)
    return _json(answers if is_batch else answers[0], status, headers)


def _json(value: Any, status: int, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"),
        content_type="application/json",
        status=status,
        headers=dict(headers or {}),
    )


def _is_own_origin(request: HttpRequest) -> bool:
    origin = request.headers.get("Origin")
    if origin is None or origin in settings.CORS_ORIGINS:
        return True
    return urlsplit(origin).netloc == request.get_host()
