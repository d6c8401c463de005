"""The theme switch: light, dark or the system's choice, kept in a cookie, needing no script."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

COOKIE = "theme"
_YEAR = 365 * 24 * 3600  # seconds


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Remember the theme (`light`, `dark`; anything else is the system's) and go back."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(
        back, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        back = "/"
    response = redirect(back)
    chosen = request.POST.get("theme", "")
    if chosen in {"light", "dark"}:
        response.set_cookie(
            COOKIE, chosen, _YEAR, secure=settings.HTTPS, httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
    return response
