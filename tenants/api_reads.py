"""What all `GET` operations of the API have in common.

An operation is a function of the request's parameters. It runs in the scope of the key's tenant
and returns the members of the JSON response. Lists use keyset pagination: `next` in the response
and a `Link` header (RFC 8288) continue after the last row, even if rows were added before it. Each
answer has an `ETag`: who polls with `If-None-Match` gets 304 while nothing has changed.
"""

import base64
import hashlib
import inspect
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import wraps
from typing import Any, ClassVar, cast, get_type_hints
from uuid import UUID

import msgspec
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
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
OLD_NAMES_DEPRECATED = datetime(2026, 11, 26, tzinfo=UTC)
OLD_NAMES_SUNSET = datetime(2027, 5, 31, tzinfo=UTC)
"""From when on answers may lack the old names of `items` (`Page.OLD_NAME`)."""
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


def _describe_old_name(schema: dict[str, Any], page: type) -> None:
    """Describe the older name of `items`, which answers have beside it."""
    if old := getattr(page, "OLD_NAME", ""):
        members = schema["properties"]
        described = {"description": "Older name of `items`, until the next version."}
        members[old] = members["items"] | described | {"deprecated": True}


class Page[Row](Answer):
    """A page of a list. All lists have this form."""

    model_config = ConfigDict(json_schema_extra=_describe_old_name)

    items: list[Row]
    """The rows."""
    next: str | None
    """The `cursor` of the next page; null on the last page."""

    OLD_NAME: ClassVar[str] = ""
    """What `items` was called before all lists had one form: it is in answers until the next
    version, unless the request has `Prefer: items`."""


def paged[Row](
    of: str,
    rows: Iterable[Row],
    params: ListParams,
    key: Callable[[Row], str],
    *,
    is_descending: bool = False,
) -> tuple[list[Row], str | None]:
    """A page of a short list that was read as a whole, in the order of the keys, and its `next`.

    `of` names the list. Raises ProblemError for an invalid cursor.
    """
    after = unseal(of, params.cursor, "\n".join)
    ordered = sorted(rows, key=key, reverse=is_descending)
    if after is not None:
        beyond: Callable[[str, str], bool] = operator.lt if is_descending else operator.gt
        ordered = [row for row in ordered if beyond(key(row), after)]
    shown = ordered[: params.limit]
    return shown, seal(of, key(shown[-1])) if len(ordered) > params.limit else None


def answer_members(
    request: HttpRequest, answer: type[Answer], members: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """The members as JSON. A list has its rows under their old name, too, and says so."""
    old = getattr(answer, "OLD_NAME", "")
    prefers_items = "items" in re.split(r"[\s,]+", request.headers.get("Prefer", ""))
    is_doubled = bool(old) and not prefers_items
    if is_doubled:
        rows = msgspec.Raw(msgspec.json.encode(members["items"]))
        members = {**members, "items": rows, old: rows}
    response = HttpResponse(
        msgspec.json.encode(members), content_type="application/json", status=status
    )
    if old:
        patch_vary_headers(response, ["Prefer"])
    if is_doubled:
        response["Deprecation"] = f"@{int(OLD_NAMES_DEPRECATED.timestamp())}"
        response["Sunset"] = format_datetime(OLD_NAMES_SUNSET, usegmt=True)
        page = request.build_absolute_uri("/api/v1/docs#lists")
        response["Link"] = f'<{page}>; rel="deprecation"; type="text/html"'
    elif old:
        response["Preference-Applied"] = "items"
    return response


def reads(
    router: Router,
    path: str,
    answer: type[Answer],
    *,
    tag: str,
    scope: Scope = Scope.READ,
    problems: Sequence[str] = (),
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., HttpResponse]]:
    """Register a function as the operation GET `path` for keys with a scope, mostly `read`.

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
            response = answer_members(request, answer, members)
            if behind := members.get("next"):
                query = urlencode({**request.GET.dict(), "cursor": behind})
                address = request.build_absolute_uri(f"{request.path}?{query}")
                others = [response["Link"]] if response.has_header("Link") else []
                response["Link"] = ", ".join([f'<{address}>; rel="next"', *others])
            if members.get("withheld", True):  # an answer with payloads is stored nowhere
                response["Cache-Control"] = "private, no-cache"
            patch_vary_headers(response, ["Authorization", "X-API-Key"])
            etag = response["ETag"] = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
            return get_conditional_response(request, etag=etag, response=response) or response

        codes = [*_SHARED, *(["parameter"] if known else []), *problems]
        router.get(
            path,
            auth=ApiKeyAuth(scope),
            response=answer,
            by_alias=True,
            operation_id=view.__name__,
            summary=view.__name__.replace("_", " ").capitalize(),
            tags=[tag],
            openapi_extra=problem_responses(codes),
        )(operation)
        return operation

    return register


def members_of(
    operation: Callable[..., HttpResponse], request: HttpRequest, **parameters: Any
) -> dict[str, Any]:
    """The members of an operation's answer, without HTTP and without a record of the read.

    Needs the tenant's scope, and `request.auth`. Raises what the operation raises.
    """
    members: dict[str, Any] = inspect.unwrap(operation)(request, **parameters)
    return members


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


def newest_first(
    of: str, rows: QuerySet[Any], params: ListParams, show: Callable[[Any], object]
) -> dict[str, Any]:
    """A page of the list `of`, the newest row first; `show` makes an item of a row.

    The rows' `id` must be a UUID that begins with the time. Raises ProblemError for an invalid
    cursor.
    """
    before = unseal(of, params.cursor, lambda place: UUID(place[0]))
    if before is not None:
        rows = rows.filter(id__lt=before)
    page = list(rows.order_by("-id")[: params.limit + 1])
    shown = page[: params.limit]
    return {
        "items": [show(one) for one in shown],
        "next": seal(of, shown[-1].id) if len(page) > params.limit else None,
    }


def utc(instant: datetime) -> datetime:
    """An instant in UTC, the zone of all times in the API."""
    return instant.astimezone(UTC)
