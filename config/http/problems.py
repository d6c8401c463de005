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
    "bad_request": Kind(400, "The request cannot be read"),
    "malformed": Kind(400, "The body is not what it should be"),
    "unreadable_body": Kind(400, "The body cannot be read as lines"),
    "missing_key": Kind(401, "No API key was sent"),
    "malformed_key": Kind(401, "This is no API key"),
    "mistyped_key": Kind(401, "The API key is mistyped"),
    "unknown_key": Kind(401, "Nobody knows this API key"),
    "revoked_key": Kind(401, "The API key was revoked"),
    "expired_key": Kind(401, "The API key has expired"),
    "missing_scope": Kind(403, "The API key does not open this"),
    "tenant_suspended": Kind(403, "The API key's tenant is suspended"),
    "forbidden": Kind(403, "Not allowed"),
    "not_found": Kind(404, "There is no such thing, or not for this key"),
    "method_not_allowed": Kind(405, "This address does not take that method"),
    "name_taken": Kind(409, "The name stands for another contract"),
    "unsigned": Kind(409, "Nothing of that is signed yet"),
    "altered": Kind(409, "The ledger is not what was signed"),
    "length_required": Kind(411, "The length of the body is not known"),
    "too_large": Kind(413, "The body is too large"),
    "line_too_long": Kind(413, "A line is too long"),
    "too_deep": Kind(413, "A line is nested too deep"),
    "ratio": Kind(413, "The body inflates to too much"),
    "too_many": Kind(413, "Too many tools at once"),
    "too_many_lines": Kind(413, "Too many lines at once"),
    "media_type": Kind(415, "This type of content is not taken"),
    "encoding": Kind(415, "This encoding of content is not taken"),
    "parameter": Kind(422, "A parameter is unknown or wrong"),
    "range": Kind(422, "There is no such range of time"),
    "query": Kind(422, "The query cannot be read"),
    "cursor": Kind(422, "The cursor is not one of ours"),
    "limit": Kind(422, "The limit is out of bounds"),
    "batch_id_reused": Kind(422, "The Idempotency-Key belongs to another body"),
    "quota": Kind(429, "The API key has sent its share"),
    "internal_server_error": Kind(500, "Something went wrong here"),
    "overloaded": Kind(503, "Too much comes at once"),
    "unavailable": Kind(503, "The database cannot be reached"),
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


def told(codes: Iterable[str]) -> dict[str, Any]:
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
                document("method_not_allowed", f"It takes {allowed}, not {request.method}.")
            ).encode()
            response["Content-Type"] = MEDIA_TYPE
            response["Allow"] = allowed
        return response
