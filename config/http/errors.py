"""Error responses: a page, a fragment for htmx, problem details under `/api/`.

They are rendered without database, session and user, because any of these may be the cause.
"""

import sys
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from config.http.htmx import wants_partial
from config.http.problems import API, problem
from config.postgresql.schema import why_unavailable

RETRY_AFTER_SECONDS = 2
"""`Retry-After` while PostgreSQL is unreachable. A restart takes about as long."""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: the request itself is wrong, for example its host name."""
    return _answer(
        request,
        HTTPStatus.BAD_REQUEST,
        "Bad request",
        "The request is invalid, or its host name is not one of this server.",
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the reason the view gave."""
    reason = str(exception) or "Your role in this tenant has no access to this page."
    return _answer(request, HTTPStatus.FORBIDDEN, "Not allowed", reason)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form that another site may have sent; `reason` is in the log."""
    return _answer(
        request,
        HTTPStatus.FORBIDDEN,
        "Form expired",
        "The form has expired, or your browser sent no cookie. Nothing changed. Go back, reload"
        " the page and submit the form again.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: it does not exist, or belongs to another tenant. The response does not say which."""
    return _answer(
        request,
        HTTPStatus.NOT_FOUND,
        "Page not found",
        "This address does not exist, or you have no access to it. It may belong to another tenant,"
        " or its data may have expired. Check the address.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500; or 503 if the database is unreachable, because then a retry helps."""
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        response = _answer(
            request,
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Temporarily unavailable",
            f"{why_unavailable(sys.exception())} Reload the page in a few seconds. Executors keep"
            " their events and send them later.",
            code="unavailable",
        )
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    return _answer(
        request,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Something went wrong",
        "The page could not be created. The server's log has the reason. Events from executors"
        " are not affected.",
    )


def not_installed(request: HttpRequest, explanation: str) -> HttpResponse:
    """501: a part that this server was installed without. The explanation says how to add it."""
    return _answer(request, HTTPStatus.NOT_IMPLEMENTED, "Not installed", explanation)


def overloaded(request: HttpRequest, explanation: str, retry_after_s: int) -> HttpResponse:
    """503: too much of this kind runs at once."""
    response = _answer(
        request,
        HTTPStatus.SERVICE_UNAVAILABLE,
        "Too many requests at once",
        explanation,
        code="overloaded",
    )
    response["Retry-After"] = str(retry_after_s)
    response._has_been_logged = True  # type: ignore[attr-defined]  # Django logs nothing: there may be many
    return response


def _answer(
    request: HttpRequest, status: HTTPStatus, heading: str, explanation: str, code: str = ""
) -> HttpResponse:
    if request.path.startswith(API):
        return problem(code or status.name.lower(), explanation)
    # htmx 4 also swaps error responses, so a request for a fragment gets a fragment.
    name = "components/_error.html" if wants_partial(request) else "error.html"
    context = {"request": request, "heading": heading, "explanation": explanation}
    # Not rendered with the request: context processors would load user and messages.
    return HttpResponse(render_to_string(name, context), status=status.value)
