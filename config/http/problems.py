"""Error responses of the API: problem details (RFC 9457), each kind with its own code.

Codes never change, because programs depend on them. `type` links to the text at /api/v1/docs.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

MEDIA_TYPE = "application/problem+json"
API = "/api/"
DOCS = "/api/v1/docs"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of problem: the HTTP status and a short title."""

    status: int
    title: str


KINDS = {
    "bad_request": Kind(400, "Bad request"),
    "malformed": Kind(400, "The body has an invalid structure"),
    "unreadable_body": Kind(400, "The body cannot be read as lines of text"),
    "missing_key": Kind(401, "API key missing"),
    "malformed_key": Kind(401, "Not an API key"),
    "mistyped_key": Kind(401, "The API key is mistyped"),
    "unknown_key": Kind(401, "Unknown API key"),
    "revoked_key": Kind(401, "The API key was revoked"),
    "expired_key": Kind(401, "The API key has expired"),
    "missing_token": Kind(401, "Access token missing"),
    "invalid_token": Kind(401, "The access token is not accepted"),
    "missing_scope": Kind(403, "The API key lacks the required scope"),
    "insufficient_scope": Kind(403, "The access token lacks the required scope"),
    "tenant_suspended": Kind(403, "The API key's tenant is suspended"),
    "disabled_owner": Kind(403, "The API key's service account is disabled"),
    "wrong_address": Kind(403, "The API key is not accepted from this address"),
    "forbidden": Kind(403, "Not allowed"),
    "not_found": Kind(404, "Not found or not accessible"),
    "method_not_allowed": Kind(405, "Method not allowed"),
    "name_taken": Kind(409, "The name is taken by another contract"),
    "conflict": Kind(409, "Not possible in the present state"),
    "needs_person": Kind(403, "A person must do this, not a program"),
    "no_owner": Kind(409, "The API key has no owner who is a member"),
    "unsigned": Kind(409, "Not signed yet"),
    "altered": Kind(409, "The ledger differs from what was signed"),
    "length_required": Kind(411, "Content-Length missing"),
    "too_large": Kind(413, "The body is too large"),
    "line_too_long": Kind(413, "A line is too long"),
    "too_deep": Kind(413, "A line is nested too deeply"),
    "ratio": Kind(413, "The compression ratio of the body is too high"),
    "too_many": Kind(413, "Too many tools in one request"),
    "too_many_lines": Kind(413, "Too many lines in one request"),
    "media_type": Kind(415, "Unsupported media type"),
    "encoding": Kind(415, "Unsupported content encoding"),
    "parameter": Kind(422, "Unknown or invalid parameter"),
    "invalid": Kind(422, "A value in the body breaks a rule"),
    "range": Kind(422, "Invalid time range"),
    "query": Kind(422, "Invalid query"),
    "cursor": Kind(422, "Invalid cursor"),
    "limit": Kind(422, "Limit out of range"),
    "batch_id_reused": Kind(422, "The Idempotency-Key was used with another body"),
    "quota": Kind(429, "Rate limit exceeded"),
    "internal_server_error": Kind(500, "Internal server error"),
    "overloaded": Kind(503, "Server overloaded"),
    "unavailable": Kind(503, "Database unavailable"),
    "provider_away": Kind(503, "The identity provider does not answer"),
}
"""All kinds of problems by code."""


class ProblemError(Exception):
    """Ends a request with a problem. `more` are further members of the response."""

    def __init__(self, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.more = more


def document(code: str, detail: str, **more: Any) -> dict[str, Any]:
    """Return the members of a problem. `message` repeats `detail` under its former name."""
    kind = KINDS[code]
    return {
        "type": f"{DOCS}#{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "message": detail,
        **more,
    }


def problem(
    code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> HttpResponse:
    """Return the response for a problem."""
    return HttpResponse(
        json.dumps(document(code, detail, **more)),
        content_type=MEDIA_TYPE,
        status=KINDS[code].status,
        headers=dict(headers or {}),
    )


def problem_responses(codes: Iterable[str]) -> dict[str, Any]:
    """Return the part of an operation's description that lists these problems."""
    responses: dict[int, Any] = {}
    for code in codes:
        kind = KINDS[code]
        answer = responses.setdefault(
            kind.status,
            {
                "description": HTTPStatus(kind.status).phrase,
                "content": {
                    MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
                },
            },
        )
        example = {"summary": kind.title, "value": document(code, f"{kind.title}.")}
        answer["content"][MEDIA_TYPE]["examples"][code] = example
    return {"responses": dict(sorted(responses.items()))}


class NotStoredMiddleware:
    """Forbids caching of responses under `/api/` and `/v1/`, which may hold payloads."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.path.startswith((API, "/v1/")):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class ProblemMiddleware:
    """Adds problem details to the empty 405 responses under `/api/`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if (
            response.status_code == HTTPStatus.METHOD_NOT_ALLOWED
            and request.path.startswith(API)
            and isinstance(response, HttpResponse)
        ):
            allowed = ", ".join(sorted(response["Allow"].replace(" ", "").split(",")))
            response.content = json.dumps(
                document(
                    "method_not_allowed",
                    f"Allowed methods: {allowed}. The request used {request.method}.",
                )
            ).encode()
            response["Content-Type"] = MEDIA_TYPE
            response["Allow"] = allowed
        return response
