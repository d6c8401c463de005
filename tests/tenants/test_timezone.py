"""Pages show times in the viewer's time zone, whatever a cookie contains."""

import re
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone

from tenants.zones import COOKIE, zone_named
from tests.support.factories import Cast, make_call, send_events

AT = datetime(2026, 11, 20, 18, 15, 0, 250_000, tzinfo=UTC)
HOSTILE = [
    "",
    "utc",
    "Europe",
    "../../../etc/passwd",
    "/etc/localtime",
    "Asia/Kathmandu\x00",
    "Asia/Kathmandu<script>",
    "posixrules",
    "x" * 4_000,
    "\ud800",
    "Asia/Kathmandu/",
]


def call_page(acme: Cast, zone: str | None) -> str:
    """The trace's page as a viewer whose browser names this zone gets it."""
    send_events(acme.tenant, make_call(started_at=AT))
    client = Client()
    client.force_login(acme.viewer)
    if zone is not None:
        client.cookies[COOKIE] = zone
    answer = client.get("/traces/trace-123")
    assert answer.status_code == 200
    return answer.content.decode()


def test_times_are_shown_in_the_viewer_zone_with_utc_as_title(acme: Cast) -> None:
    html = call_page(acme, "Asia/Kathmandu")
    hover = 'datetime="2026-11-20T18:15:00.250Z" title="2026-11-20 18:15:00.250 UTC"'
    assert f"<time {hover}>2026-11-21 00:00:00.250 UTC+5:45</time>" in html
    assert timezone.get_current_timezone_name() == "UTC"  # the next request begins in UTC


def test_times_are_utc_without_a_cookie(acme: Cast) -> None:
    assert ">2026-11-20 18:15:00.250 UTC</time>" in call_page(acme, None)


@pytest.mark.parametrize("name", HOSTILE)
def test_unknown_zone_name_means_utc(name: str) -> None:
    assert zone_named(name) is UTC


@pytest.mark.parametrize("name", ["../../etc/passwd", "Europe", "Asia/Nowhere"])
def test_invalid_cookie_means_utc(acme: Cast, name: str) -> None:
    assert ">2026-11-20 18:15:00.250 UTC</time>" in call_page(acme, name)


def test_legacy_zone_names_are_known() -> None:
    # Chromium says Calcutta and Katmandu; Debian has moved both out of its tzdata.
    for name in ("Asia/Calcutta", "Asia/Katmandu", "Europe/Kiev", "UTC", "Etc/GMT+5"):
        assert str(zone_named(name)) == name


@pytest.mark.parametrize("address", ["/traces/", "/calls/", "/calls/open", "/inbox/", "/tools/"])
def test_every_time_on_a_page_has_utc_attributes(acme: Cast, address: str) -> None:
    events = [*make_call(), *make_call(is_open=True)]
    send_events(acme.tenant, events)
    client = Client()
    client.force_login(acme.admin)
    client.cookies[COOKIE] = "Asia/Kathmandu"
    html = client.get(address).content.decode()
    times = re.findall(r"<time[^>]*>", html)
    assert times or address in {"/inbox/", "/tools/"}
    for each in times:
        assert re.fullmatch(r'<time datetime="[^"]+Z" title="[^"]+ UTC">', each)
