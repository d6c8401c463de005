"""Errors as answers: a page, a fragment for htmx, problem details under `/api/`.

They are made without the database, the session and the user, any of which may be the reason.
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
"""What clients are told while PostgreSQL is away: about as long as it takes to restart."""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: the request itself is wrong, such as a host name that is not ours."""
    return _answer(
        request,
        HTTPStatus.BAD_REQUEST,
        "Not understood",
        "The request cannot be read, or was sent to a name this server does not answer to.",
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the reason the view gave."""
    reason = str(exception) or "Your role in this tenant does not include this page."
    return _answer(request, HTTPStatus.FORBIDDEN, "Not allowed", reason)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form that another site may have sent; `reason` is in the log."""
    return _answer(
        request,
        HTTPStatus.FORBIDDEN,
        "Please try again",
        "The form was too old, or your browser sent no cookie. Go back, reload the page and"
        " send it again; nothing was changed.",
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: not there, or another tenant's, which nobody is told."""
    return _answer(
        request,
        HTTPStatus.NOT_FOUND,
        "Nothing here",
        "This address names nothing you may see. It may belong to another tenant, be older"
        " than what is kept, or be mistyped.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500, and 503 where the database is away: that passes, and trying again helps."""
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        response = _answer(
            request,
            HTTPStatus.SERVICE_UNAVAILABLE,
            "Back in a moment",
            f"{why_unavailable(sys.exception())} Reload the page in a few seconds; what executors"
            " record meanwhile is kept by them and sent then.",
        )
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    return _answer(
        request,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Something went wrong",
        "The page could not be made; the reason is in the server's log. What executors sent"
        " is not affected.",
    )


def _answer(
    request: HttpRequest, status: HTTPStatus, heading: str, explanation: str
) -> HttpResponse:
    if request.path.startswith(API):
        away = status is HTTPStatus.SERVICE_UNAVAILABLE
        return problem("unavailable" if away else status.name.lower(), explanation)
    # htmx 4 swaps error answers, too, so a fragment gets a fragment.
    name = "components/_error.html" if wants_partial(request) else "error.html"
    context = {"request": request, "heading": heading, "explanation": explanation}
    # Without the request as such: context processors would ask for user and messages.
    return HttpResponse(render_to_string(name, context), status=status.value)
