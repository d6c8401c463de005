"""Several web hosts on one database: what each stores is what one would have stored."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest

from config.http.quota import HOLDS_S
from tenants.models import Scope
from tests.support.factories import make_call
from tests.support.installation import until
from tests.support.installation_requests import Senders, post_events
from tests.support.many_hosts import many_hosts

pytestmark = pytest.mark.slow

CALLS = 40


@pytest.mark.sampled("running installation", 1)
def test_two_web_hosts_store_each_call_once() -> None:
    """Both take calls of one tenant at once, and calls that the other has stored already."""
    with many_hosts() as site:
        hosts = [site.add("one"), site.add("two")]
        facts = site.tenant("acme")
        at = [facts | {"url": host.web()} for host in hosts]
        calls = [make_call() for _ in range(CALLS)]
        with Senders(at[0]) as one, Senders(at[1]) as two:
            for call in calls:
                for each in at:  # a busy server may ask for a repetition
                    until(partial(_is_stored, each, call))
        assert one.answers.keys() | two.answers.keys() <= {200, 503}
        with site.superuser() as superuser:
            ((stored,),) = superuser.execute("SELECT count(*) FROM invocation").fetchall()
        assert stored == CALLS + one.answers[200] + two.answers[200]
        checked = hosts[1].manage("reindex", "--check", "--json")
        assert json.loads(checked)


@pytest.mark.sampled("running installation", 1)
def test_two_web_hosts_share_sessions_and_failed_logins() -> None:
    with many_hosts() as site:
        hosts = [site.add("one"), site.add("two")]
        site.tenant("acme")
        password = "correct horse battery"
        hosts[0].manage("changepassword", "acme-a", "--stdin", given=password)
        one, two = (host.web() for host in hosts)
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        assert "/login" not in sign_in(browser, one, password)
        with browser.open(two) as page:
            assert "/login" not in page.url
        for attempt in range(10):
            stranger = build_opener(HTTPCookieProcessor(CookieJar()))
            assert "/login" in sign_in(stranger, (one, two)[attempt % 2], "wrong")
        stranger = build_opener(HTTPCookieProcessor(CookieJar()))
        assert "/login" in sign_in(stranger, two, password), "ten failures on both hosts together"


def sign_in(browser: OpenerDirector, url: str, password: str) -> str:
    """Sign in as the admin; the address of the page that follows."""
    with browser.open(f"{url}/login") as page:
        token = page.read().decode().split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = {"username": "acme-a", "password": password, "csrfmiddlewaretoken": token}
    with browser.open(f"{url}/login", urlencode(form).encode()) as page:
        return str(page.url)


@pytest.mark.sampled("running installation", 1)
def test_two_web_hosts_share_the_quota_of_a_key() -> None:
    per_second = 20
    with many_hosts() as site:
        quota = str(per_second)
        hosts = [site.add(each, TOOLTRAIL_EVENTS_PER_SECOND=quota) for each in ("one", "two")]
        facts = site.tenant("acme")
        at = [facts | {"url": host.web()} for host in hosts]
        began = time.monotonic()
        with Senders(at[0]) as one, Senders(at[1]) as two:
            time.sleep(5)
        seconds = time.monotonic() - began
    events = 2 * (one.answers[200] + two.answers[200])
    assert {200, 429} <= one.answers.keys() | two.answers.keys() <= {200, 429, 503}
    allowed = per_second * (HOLDS_S + seconds)
    # Two senders of each may have been admitted before the first of them was counted.
    assert per_second * HOLDS_S <= events <= allowed + 2 * (per_second + 2 * 2)


@pytest.mark.sampled("running installation", 1)
def test_the_other_host_shows_calls_in_its_live_tail_and_runs_imports() -> None:
    """What one host is sent, another shows at once; a job of one is done by the other's worker."""
    with many_hosts() as site:
        one, two = site.add("one"), site.add("two")
        facts = site.tenant("acme", *Scope.values)
        sender, url = facts | {"url": one.web()}, two.web()
        two.worker()
        password = "correct horse battery"
        one.manage("changepassword", "acme-a", "--stdin", given=password)
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        sign_in(browser, url, password)
        with browser.open(f"{url}/calls/?live=1") as page:
            (tail,) = re.findall(r'hx-get="(/calls/tail[^"]*)"', page.read().decode())
        for number in range(3):
            assert post_events(sender, make_call(tool_name=f"tool_{number}")) == 200
            with browser.open(f"{url}{unescape(tail)}") as page:
                assert f"tool_{number}" in page.read().decode()

        tools = [{"name": f"imported_{n}", "inputSchema": {"type": "object"}} for n in range(300)]
        headers = {"Authorization": f"Bearer {facts['api_key']}"}
        address = f"{sender['url']}/api/v1/registry?as=published&reason=Moved"
        document = json.dumps({"tools": tools}).encode()
        sent = Request(address, document, headers | {"Content-Type": "application/json"})
        with build_opener().open(sent) as answer:
            assert answer.status == 202
            job = answer.headers["Location"]

        def imported() -> dict[str, Any]:
            with build_opener().open(Request(f"{url}{job}", headers=headers)) as answer:
                found: dict[str, Any] = json.loads(answer.read())
            return found if found["state"] == "done" else {}

        assert until(imported)["added"] == len(tools)


@pytest.mark.sampled("running installation", 1)
def test_two_hosts_create_the_same_partitions_at_once() -> None:
    """While senders go on: each partition once, guarded, and no host fails."""
    with many_hosts() as site:
        hosts = [site.add("one"), site.add("two")]
        facts = site.tenant("acme") | {"url": hosts[0].web()}
        since = f"{datetime.now(UTC) - timedelta(days=45):%Y-%m-%d}"
        with Senders(facts) as senders, ThreadPoolExecutor(len(hosts)) as both:
            command = ("partitions", "apply", "--import", since)
            made = list(both.map(lambda host: host.completed(*command), hosts))
        assert senders.answers[200] > 0
        assert senders.answers.keys() <= {200, 503}
        for each in made:  # one may have been stopped by a lock of the other, and says so
            assert each.returncode == 0 or "run apply again later" in each.stderr, each.stderr
        assert hosts[0].manage(*command).splitlines()[-1] == "0 created"
        with site.superuser() as superuser:
            unguarded = superuser.execute(
                "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"
                " AND NOT (relrowsecurity AND relforcerowsecurity)"
            ).fetchall()
        assert unguarded == []


def _is_stored(facts: dict[str, str], call: list[dict[str, Any]]) -> bool:
    return post_events(facts, call) == 200
