"""The cookie for the light or dark theme. The account stores the choice for other browsers."""

from django.conf import settings
from django.http import HttpResponse

COOKIE = "theme"
THEMES = ("light", "dark")
_YEAR = 365 * 24 * 3600  # seconds


def remember_theme(response: HttpResponse, theme: str) -> None:
    """Set the browser's theme from its next request on; '' is the system's."""
    if theme in THEMES:
        response.set_cookie(
            COOKIE, theme, _YEAR, secure=settings.HTTPS, httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
