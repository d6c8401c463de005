"""Sessions and passwords: cookies, the end of a session, rules for passwords."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tenants.models import Action, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast, make_user

# Run behind a proxy that speaks TLS, as the documented variables say, on the test's database.
_DEPLOYED = """
import json
from django.conf import settings
from django.test import Client
client = Client(headers={"Host": "tools.example", "X-Forwarded-Proto": "https"})
chosen = client.post("/theme", {"theme": "dark"})
plain = Client(headers={"Host": "tools.example"}).get("/login")
print(json.dumps({
    "flags": {
        name: [settings.__getattr__(f"{name}_COOKIE_{flag}") for flag in ("SECURE", "SAMESITE")]
        for name in ("SESSION", "CSRF")
    },
    "theme": chosen.cookies["theme"].OutputString(),
    "hsts": chosen["Strict-Transport-Security"],
    "plain": [plain.status_code, plain["Location"]],
}))
"""


def _sign_in(cast: Cast, client: Client) -> Any:
    pair = {"username": cast.viewer.username, "password": PASSWORD}
    return client.post(reverse("account_login"), pair)


def test_session_cookie_is_http_only_and_same_site(acme: Cast) -> None:
    cookie = _sign_in(acme, Client()).cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert not cookie["domain"]


@pytest.mark.generated(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        # Other names under ours may not have TLS.
        ({}, "max-age=31536000"),
        ({"TOOLTRAIL_HSTS_SUBDOMAINS": "true"}, "max-age=31536000; includeSubDomains; preload"),
        ({"TOOLTRAIL_HSTS_SECONDS": "60"}, "max-age=60"),
    ],
)
def test_cookies_and_answers_are_secure_behind_tls(
    chosen: dict[str, str], sent: str, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "TOOLTRAIL_VAR": str(tmp_path),
        "TOOLTRAIL_HOSTS": "tools.example",
        "TOOLTRAIL_HTTPS": "true",
        "TOOLTRAIL_SECRET_KEY": secrets.token_urlsafe(48),
        **chosen,
    }
    completed = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", _DEPLOYED],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    facts = json.loads(completed.stdout)
    assert facts["flags"] == {"SESSION": [True, "Lax"], "CSRF": [True, "Lax"]}
    assert {"Secure", "HttpOnly", "SameSite=Lax"} <= set(facts["theme"].split("; "))
    assert facts["hsts"] == sent
    assert facts["plain"] == [301, "https://tools.example/login"]


def test_session_id_changes_at_sign_in(acme: Cast) -> None:
    client = Client()
    client.session.save()
    planted = client.cookies[settings.SESSION_COOKIE_NAME].value
    _sign_in(acme, client)
    assert client.get(reverse("trace_list")).status_code == 200
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != planted
    stranger = Client()
    stranger.cookies[settings.SESSION_COOKIE_NAME] = planted
    assert stranger.get(reverse("trace_list")).status_code == 302


def _change(client: Client, new: str) -> Any:
    typed = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    return client.post(reverse("password_change"), typed)


def test_password_change_ends_other_sessions(acme: Cast) -> None:
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        _sign_in(acme, client)
    assert _change(here, "a wholly different one 7").status_code == 302
    assert here.get(reverse("trace_list")).status_code == 200
    assert elsewhere.get(reverse("trace_list")).status_code == 302


def test_account_without_a_tenant_can_change_its_password() -> None:
    user = make_user("stray")
    client = Client()
    client.force_login(user)
    address = reverse("password_change")
    assert address in client.get("/", follow=True).content.decode()
    page = client.get(address)
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    new = "a wholly different one 7"
    assert _change(client, "short").status_code == 200
    assert _change(client, new).status_code == 302
    assert client.get(address).status_code == 200, "still signed in"
    assert Client().login(username=user.username, password=new)
    assert Client().get(address).status_code == 302, "only who is signed in"


def test_password_change_in_a_suspended_tenant_is_recorded_there(acme: Cast) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(suspended_at=timezone.now())
    client = Client()
    client.force_login(acme.viewer)
    assert client.get("/traces/").status_code == 403
    assert _change(client, "a wholly different one 7").status_code == 302
    with tenant_scope(acme.tenant.id):
        recorded = Action.objects.filter(tenant_id=acme.tenant.id, verb="password.change")
        assert [each.subject for each in recorded] == [acme.viewer.username]


@pytest.mark.parametrize(
    ("weak", "why"),
    [
        ("k9-mPq2-xZ7", "at least 12 characters"),
        ("918273645546372819", "entirely numeric"),
        ("1qaz2wsx3edc4rfv", "too common"),
        ("{username}", "too similar to the username"),
    ],
)
def test_weak_password_is_rejected_with_the_reason(acme: Cast, weak: str, why: str) -> None:
    client = Client()
    _sign_in(acme, client)
    answer = _change(client, weak.format(username=acme.viewer.username))
    assert answer.status_code == 200
    assert why in answer.content.decode()
    assert _sign_in(acme, Client()).status_code == 302, "the old one still signs in"
