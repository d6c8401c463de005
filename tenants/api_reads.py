"""What all `GET` operations of the API have in common.

An operation is a function of the request's parameters. It runs in the scope of the key's tenant
and returns the members of the JSON response. Lists use keyset pagination: `next` in the response
and a `Link` header (RFC 8288) continue after the last row, even if rows were added before it.
"""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, cast, get_type_hints

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from ninja import Router, Schema
from pydantic import BaseModel, ConfigDict, Field

from config.http.problems import ProblemError, problem_responses
from tenants.actions import record_view
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.keys import actor_of
from tenants.models import Scope
from tenants.scope import tenant_scope

MAX_CURSOR = 2_000
_ADDRESS_MAX = 500
_SHARED = ("missing_key", "unknown_key", "missing_scope", "method_not_allowed", "unavailable")


class Params(Schema):
    """The parameters of a URL. Unknown ones are rejected: a mistyped filter would filter nothing,
    and the response would have more than was requested.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


class ListParams(Params):
    """The parameters of a list."""

    cursor: str = ""
    """`next` of the previous response; omit it for the first page."""
    limit: int = Field(100, ge=1, le=1000)
    """Maximum number of rows."""


class Answer(BaseModel):
    """The response of an operation; docstrings of attributes become their descriptions."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Page(Answer):
    """A page of a list."""

    next: str | None
    """The `cursor` of the next page; null on the last page."""


def reads(
    router: Router, path: str, answer: type[Answer], *, tag: str, problems: Sequence[str] = ()
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., HttpResponse]]:
    """Register a function as the operation GET `path` for keys with the scope `read`.

    Its parameters are those of the path and `params: Query[…]`, a `Params`. It returns the members
    of `answer`; instants, UUIDs and `msgspec.Raw` need no conversion. If `withheld` is False in
    them, the read is recorded in the audit log. `problems` are the error codes that it raises in
    addition to those of every operation.
    """

    def register(view: Callable[..., dict[str, Any]]) -> Callable[..., HttpResponse]:
        params = get_type_hints(view).get("params")
        known = (
            {field.alias or name for name, field in params.model_fields.items()}
            if params
            else set()
        )

        @wraps(view)
        def operation(request: HttpRequest, **parameters: Any) -> HttpResponse:
            if unknown := sorted(request.GET.keys() - known):
                offered = f" Available parameters: {', '.join(sorted(known))}." if known else ""
                raise ProblemError(
                    "parameter",
                    f"Unknown parameter {unknown[0]!r}.{offered}",
                    parameter=unknown[0],
                )
            with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
                members = view(request, **parameters)
                if members.get("withheld") is False:
                    record_read(request, view.__name__)
            response = HttpResponse(msgspec.json.encode(members), content_type="application/json")
            if behind := members.get("next"):
                query = urlencode({**request.GET.dict(), "cursor": behind})
                response["Link"] = f'<{request.path}?{query}>; rel="next"'
            return response

        codes = [*_SHARED, *(["parameter"] if known else []), *problems]
        router.get(
            path,
            auth=ApiKeyAuth(Scope.READ),
            response=answer,
            by_alias=True,
            operation_id=view.__name__,
            summary=view.__name__.replace("_", " ").capitalize(),
            tags=[tag],
            openapi_extra=problem_responses(codes),
        )(operation)
        return operation

    return register


def record_read(request: HttpRequest, operation: str) -> None:
    """Record that an operation gave payloads to a key, or may have: at most once a minute.

    The record has the first address of that minute. One record per request would make more
    records than there are payloads.
    """
    identity = cast(ApiRequest, request).auth
    address = request.get_full_path()[:_ADDRESS_MAX]
    record_view(identity.tenant_id, actor_of(identity), "payload.read", operation, address=address)


def seal(of: str, *place: object) -> str:
    """Encode a position in a list as a cursor; `of` names the list."""
    text = "\n".join(
        [of, *(each.isoformat() if isinstance(each, datetime) else str(each) for each in place)]
    )
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def unseal[T](of: str, cursor: str, read: Callable[[list[str]], T]) -> T | None:
    """Decode a cursor of the list `of` to a position; None for an empty cursor.

    `read` makes the position from the values given to `seal`, as strings. It raises ValueError or
    LookupError for invalid values. Raises ProblemError for an invalid cursor or another list's.
    """
    if not cursor:
        return None
    try:
        if len(cursor) > MAX_CURSOR:
            raise ValueError("too long")
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True).decode()
        name, *place = text.split("\n", 3)
        if name != of:
            raise ValueError("of another list")
        return read(place)
    except (ValueError, LookupError, OverflowError) as error:
        raise ProblemError(
            "cursor", "cursor must be the next of an earlier response of this list."
        ) from error


def utc(instant: datetime) -> datetime:
    """An instant in UTC, the zone of all times in the API."""
    return instant.astimezone(UTC)
