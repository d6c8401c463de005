"""Whether a request wants a fragment or the page around it, and errors for either."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails


def wants_partial(request: HttpRequest) -> bool:
    """True if htmx asks for a part of the page: not boosted, not restoring history."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    if htmx is None or not htmx:
        return False
    return not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HttpRequest, template: str, partial: str, context: dict[str, object]
) -> HttpResponse:
    """Render the page, or only its partial of that name when htmx asks for a part."""
    name = f"{template}#{partial}" if wants_partial(request) else template
    response = render(request, name, context)
    patch_vary_headers(response, ("HX-Request",))
    return response


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: htmx 4 swaps error answers too, so a fragment gets a fragment."""
    return _error(
        request, 404, "Nothing here", "It may be gone, or belong to another tenant.", exception
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the reason the view gave."""
    return _error(request, 403, "Not allowed", str(exception), exception)


def _error(
    request: HttpRequest, status: int, heading: str, explanation: str, exception: Exception
) -> HttpResponse:
    name = "components/_error.html" if wants_partial(request) else f"{status}.html"
    context = {"heading": heading, "explanation": explanation}
    if status == 403:
        context["exception"] = str(exception)
    return render(request, name, context, status=status)
