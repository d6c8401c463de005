"""Error pages: complete, a fragment for htmx, JSON for the API, always with CSP."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from tests.support.factories import Cast, make_user

Fault = Callable[..., Any]  # the test client's answer, which has no type of its own


@contextmanager
def unreadable(table: str) -> Iterator[None]:
    """Take the application's right to read a table away: a page of it fails for real."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(f"REVOKE SELECT ON {table} FROM tooltrail_app")
        try:
            yield
        finally:
            owner.execute(f"GRANT SELECT ON {table} TO tooltrail_app")


@contextmanager
def no_database() -> Iterator[None]:
    """Let the database's address lead nowhere."""
    host = connection.settings_dict["HOST"]
    connection.close()
    connection.settings_dict["HOST"] = "/nowhere"
    try:
        yield
    finally:
        connection.settings_dict["HOST"] = host
        connection.close()


def _client(cast: Cast, *, checks_csrf: bool = False) -> Client:
    client = Client(checks_csrf, raise_request_exception=False)
    client.force_login(cast.viewer)
    client.cookies["theme"] = "dark"
    return client


def _broken_page(cast: Cast, **headers: str) -> Any:
    client = _client(cast)
    with unreadable("trace"):
        return client.get("/traces/", headers=headers)


def _without_database(cast: Cast, **headers: str) -> Any:
    client = _client(cast)
    with no_database():
        return client.get("/traces/", headers=headers)


def _unknown(cast: Cast, **headers: str) -> Any:
    return _client(cast).get("/nowhere/", headers=headers)


def _forbidden(cast: Cast, **headers: str) -> Any:
    return _client(cast).get("/settings/keys", headers=headers)


def _forged(cast: Cast, **headers: str) -> Any:
    client = _client(cast, checks_csrf=True)
    return client.post("/switch-tenant", {"tenant": str(cast.tenant.id)}, headers=headers)


def _too_many_fields(cast: Cast, **headers: str) -> Any:
    return _client(cast).post("/theme", {f"field{n}": "" for n in range(5_000)}, headers=headers)


ERRORS = pytest.mark.parametrize(
    ("fail", "status", "heading"),
    [
        (_too_many_fields, 400, "Bad request"),
        (_forbidden, 403, "Not allowed"),
        (_forged, 403, "Form expired"),
        (_unknown, 404, "Page not found"),
        (_broken_page, 500, "Something went wrong"),
        (_without_database, 503, "Temporarily unavailable"),
    ],
)


@ERRORS
def test_error_page_uses_the_selected_theme_and_leaks_nothing(
    acme: Cast, fail: Fault, status: int, heading: str
) -> None:
    answer = fail(acme)
    page = answer.content.decode()
    assert answer.status_code == status
    assert f"<h1>{heading}</h1>" in page
    assert '<html lang="en" data-theme="dark">' in page
    assert "css/app.css" in page
    assert 'href="/"' in page
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    for secret in ("Traceback", "psycopg", "permission denied", "tooltrail_app", "/nowhere"):
        assert secret not in page


@ERRORS
def test_htmx_request_gets_an_error_fragment(
    acme: Cast, fail: Fault, status: int, heading: str
) -> None:
    answer = fail(acme, **{"HX-Request": "true"})
    assert answer.status_code == status
    assert f"<h2>{heading}</h2>" in answer.content.decode()
    assert "<html" not in answer.content.decode()


def test_unavailable_database_answers_with_retry_after(acme: Cast) -> None:
    assert int(_without_database(acme).headers["Retry-After"]) > 0
    assert _client(acme).get("/traces/").status_code == 200


def test_forbidden_page_names_the_required_role(acme: Cast) -> None:
    assert "role admin" in _forbidden(acme).content.decode()


def test_api_errors_are_json() -> None:
    client = Client(raise_request_exception=False)
    missing = client.get("/api/v1/nowhere")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    wrong_host = client.get("/api/v1/summary", headers={"Host": "evil.example"})
    assert (wrong_host.status_code, wrong_host.json()["code"]) == (400, "bad_request")
    with unreadable("api_key"):
        broken = client.get(
            "/api/v1/summary",
            headers={
                "Authorization": "Bearer tt_01a1fdf6f2bd71c7b260b8e678807c96_CW7EhVECX4HT_"
                "94EyWPoydGT3ICcMIkmaYjsvABSkUfVs3bdmXBdz_6ac5d4f5"
            },
        )
    assert (broken.status_code, broken.json()["code"]) == (500, "internal_server_error")


def test_user_without_a_tenant_gets_an_error_page() -> None:
    client = Client()
    client.force_login(make_user("stray"))
    answer = client.get("/traces/")
    assert answer.status_code == 403
    assert "<h1>No tenant yet</h1>" in answer.content.decode()
