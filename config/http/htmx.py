"""Responses for htmx: a fragment or the whole page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails


def wants_partial(request: HttpRequest) -> bool:
    """Whether htmx requests a part of the page: not boosted, not restoring history."""
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    if htmx is None or not htmx:
        return False
    return not htmx.boosted and not htmx.history_restore_request


def render_page(
    request: HttpRequest, template: str, partial: str, context: dict[str, object]
) -> HttpResponse:
    """Render the page, or only its partial `partial` if htmx requests a part."""
    name = f"{template}#{partial}" if wants_partial(request) else template
    response = render(request, name, context)
    patch_vary_headers(response, ("HX-Request",))
    return response
