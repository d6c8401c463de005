"""Light or dark: the cookie pages read, and what an account remembers for other browsers."""

from django.conf import settings
from django.http import HttpResponse

COOKIE = "theme"
THEMES = ("light", "dark")
_YEAR = 365 * 24 * 3600  # seconds


def remember_theme(response: HttpResponse, theme: str) -> None:
    """Let the browser show this theme from its next request on; '' is the system's."""
    if theme in THEMES:
        response.set_cookie(
            COOKIE, theme, _YEAR, secure=settings.HTTPS, httponly=True, samesite="Lax"
        )
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
