"""Signing in and out, and the limits on guessing passwords."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import urllib3
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tenants.models import SignInFailure
from tenants.sign_in import FAILURES_ALLOWED, FAILURES_COUNT_FOR
from tests.support.factories import PASSWORD, Cast, make_user
from tests.support.server import LiveServer


def _sign_in(client: Client, name: str, password: str, address: str = "192.0.2.1") -> bool:
    answer = client.post(
        reverse("account_login"), {"username": name, "password": password}, REMOTE_ADDR=address
    )
    return answer.status_code == 302


def test_valid_credentials_sign_in_and_redirect_to_the_requested_page(acme: Cast) -> None:
    client = Client()
    answer = client.post(
        reverse("account_login"),
        {"username": acme.admin.username, "password": PASSWORD, "next": "/settings/keys"},
    )
    assert answer["Location"] == "/settings/keys"
    assert client.get("/settings/keys").status_code == 200


def test_sign_in_never_redirects_to_another_site(acme: Cast) -> None:
    answer = Client().post(
        reverse("account_login"),
        {"username": acme.admin.username, "password": PASSWORD, "next": "https://evil.example/"},
    )
    assert answer["Location"] == reverse("home")


def test_sign_out_requires_post_and_ends_the_session(acme: Cast) -> None:
    client = Client()
    client.force_login(acme.admin)
    assert client.get(reverse("account_logout")).status_code == 405
    assert client.post(reverse("account_logout")).status_code == 302
    assert client.get("/settings/keys").status_code == 302


def test_unknown_name_and_wrong_password_show_the_same_error(acme: Cast) -> None:
    answers = [
        Client().post(reverse("account_login"), {"username": name, "password": "x"})
        for name in (acme.viewer.username, "nobody-at-all")
    ]
    errors = [answer.context["form"].non_field_errors() for answer in answers]
    assert errors[0]
    assert errors[0] == errors[1]


def test_correct_password_is_rejected_after_too_many_failures(acme: Cast) -> None:
    client, name = Client(), acme.viewer.username
    for _ in range(FAILURES_ALLOWED):
        assert not _sign_in(client, name, "wrong")
    assert not _sign_in(client, name, PASSWORD)
    assert not _sign_in(client, name.upper(), PASSWORD), "another spelling is no way around"
    assert _sign_in(client, name, PASSWORD, address="192.0.2.2"), "others are not locked out"


def _sign_in_through_proxy(name: str, password: str, hops: str) -> bool:
    form = {"username": name, "password": password}
    headers = {"X-Forwarded-For": hops}
    answer = Client().post(reverse("account_login"), form, headers=headers, REMOTE_ADDR="192.0.2.1")
    return answer.status_code == 302


def test_clients_of_a_trusted_proxy_are_counted_separately(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PROXIES", 1)
    name = acme.viewer.username
    for number in range(FAILURES_ALLOWED):
        assert not _sign_in_through_proxy(name, "wrong", f"10.0.0.{number}, 198.51.100.1")
    assert not _sign_in_through_proxy(name, PASSWORD, "10.9.9.9, 198.51.100.1"), "forged hop"
    assert _sign_in_through_proxy(name, PASSWORD, "198.51.100.2")


def test_forwarded_header_is_ignored_without_a_trusted_proxy(acme: Cast) -> None:
    name = acme.viewer.username
    for number in range(FAILURES_ALLOWED):
        assert not _sign_in_through_proxy(name, "wrong", f"198.51.100.{number}")
    assert not _sign_in_through_proxy(name, PASSWORD, "198.51.100.99")


@pytest.mark.slow
def test_throttled_sign_in_runs_the_same_statements_for_any_name(acme: Cast) -> None:
    """Otherwise its time reveals which names exist. Once throttled, no password is checked."""
    lonely = make_user("lonely")
    names = (acme.viewer.username, lonely.username, "nobody-at-all")
    statements: dict[str, list[list[str]]] = {name: [] for name in names}
    for _ in range(FAILURES_ALLOWED + 2):
        for name in names:
            with CaptureQueriesContext(connection) as queries:
                assert not _sign_in(Client(), name, "x")
            words = [each["sql"].split()[0] for each in queries.captured_queries]
            statements[name].append(
                ["READ OR WRITE" if w in ("SELECT", "INSERT") else w for w in words]
            )
    assert statements[names[0]] == statements[names[1]] == statements[names[2]]


def test_failures_expire(acme: Cast) -> None:
    client, name = Client(), acme.editor.username
    for _ in range(FAILURES_ALLOWED):
        _sign_in(client, name, "wrong")
    SignInFailure.objects.using("owner").update(
        at=timezone.now() - FAILURES_COUNT_FOR - timedelta(seconds=1)
    )
    assert _sign_in(client, name, PASSWORD)
    _sign_in(Client(), name, "wrong")
    assert not SignInFailure.objects.filter(at__lt=timezone.now() - FAILURES_COUNT_FOR).exists()


@pytest.mark.parametrize("name", ["", "\x00", "x" * 5000, "名前"])
def test_unusual_names_are_rejected_normally(name: str) -> None:
    assert not _sign_in(Client(), name, "x")


def test_password_can_be_changed(acme: Cast) -> None:
    client, new = Client(), "a wholly different one 7"
    client.force_login(acme.viewer)
    answer = client.post(
        reverse("password_change"),
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )
    assert answer.status_code == 302
    assert client.get(reverse("password_change")).status_code == 200, "still signed in"
    assert _sign_in(Client(), acme.viewer.username, new)


@pytest.mark.slow
def test_concurrent_password_attempts_are_limited_like_sequential_ones(
    live_server: LiveServer, acme: Cast
) -> None:
    """Forty at once over real HTTP: no more are checked than may fail."""
    name = acme.viewer.username
    with urllib3.PoolManager(maxsize=40) as http:
        page = http.request("GET", f"{live_server.url}/login")
        # The form of passkeys has one, too.
        token, _ = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.data.decode())
        form = {"username": name, "password": "wrong", "csrfmiddlewaretoken": token}
        cookie = {"Cookie": page.headers["Set-Cookie"].partition(";")[0]}

        def guess(_number: int) -> str:
            answer = http.request_encode_body(
                "POST",
                f"{live_server.url}/login",
                fields=form,
                headers=cookie,
                encode_multipart=False,
            )
            return answer.data.decode()

        with ThreadPoolExecutor(40) as threads:
            answers = list(threads.map(guess, range(40)))
        refused = sum("Too many failed sign-ins" in answer for answer in answers)
        assert (len(answers) - refused, refused) == (FAILURES_ALLOWED, 40 - FAILURES_ALLOWED)
        assert all("Please enter a correct" in answer or "Too many" in answer for answer in answers)


def test_successful_sign_ins_are_not_counted(acme: Cast) -> None:
    for _ in range(FAILURES_ALLOWED + 1):
        assert _sign_in(Client(), acme.viewer.username, PASSWORD)
