"""The theme switch: light, dark or the system's, stored in a cookie; needs no script.

A signed-in user's choice is stored in the account and applies in other browsers after sign-in.
"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from tenants.models import User
from tenants.theme import THEMES, remember_theme


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme (`light`, `dark`; anything else is the system's) and redirect back."""
    back = request.POST.get("next", "")
    # `redirect` would treat other text as the name of a view.
    if not back.startswith("/") or not url_has_allowed_host_and_scheme(
        back, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        back = "/"
    chosen = request.POST.get("theme", "")
    if isinstance(request.user, User):
        request.user.theme = chosen if chosen in THEMES else ""
        request.user.save(update_fields=["theme"])
    response = redirect(back)
    remember_theme(response, chosen)
    return response
