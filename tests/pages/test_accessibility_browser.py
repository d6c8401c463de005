"""axe-core on every page of calls and settings, in light and dark; and sizes of pages.

What axe calls serious or critical fails; so does a first load of more than 250 KB. With `--sample`
some of the pages are checked, each in one of the two schemes, by the seed.
"""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from audit.models import ChannelKind, RejectedEvent
from audit.queries.call_query import parse
from audit.queries.notes import NoteFilter, note_page
from audit.queries.saved_views import save_view
from audit.work.payload_search import run_slice, start_search
from audit.work.replay.job import run_slice as run_replay
from tenants.invitations import invite
from tenants.keys import create_key
from tenants.models import Role, Scope
from tenants.scope import tenant_scope
from tests.support import sampling
from tests.support.accessibility import (
    DOUBLE_SIZE,
    Scheme,
    accessibility_findings,
    findings_in_forced_colours,
    open_folds,
    running_animations,
    width_at_double_size,
)
from tests.support.acts import act_on_notes, act_on_prices
from tests.support.alerts import fired_alert
from tests.support.argument_comparisons import compared_arguments
from tests.support.contracts import make_contract
from tests.support.deliveries import make_channel
from tests.support.drafts import drafted_and_replayed
from tests.support.erasures import preview_erasure
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import sign
from tests.support.legal_holds import set_hold
from tests.support.pages import signed_in
from tests.support.reports import make
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in
from tests.support.traces import (
    FAILED_OUTPUT,
    VIOLATED_GUARD,
    milliseconds_after_start,
    send_family,
)
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

FIRST_LOAD = 250_000  # bytes over the network, of which ECharts has 181,000
PAGES_SAMPLED = 18


@dataclass(frozen=True)
class Site:
    """A tenant with something on every page, and the addresses of its pages."""

    cast: Cast
    addresses: list[str]


@pytest.fixture(scope="module")
def site() -> Site:
    cast = make_cast("acme")
    ids = send_family(cast)
    now = datetime.now(UTC)
    many = [
        # Of the day before, so that lists of calls are short: axe takes 30 ms a row.
        make_call(trace_id="many", started_at=now + timedelta(days=-1, milliseconds=n))
        for n in range(130)
    ]
    many.append(make_call(trace_id="many", tool_name="late", output=FAILED_OUTPUT, run_id="run-7"))
    many.append(make_call(tool_name="search", args={"q": "needle"}, guard=VIOLATED_GUARD))
    send_events(cast.tenant, [event for call in many for event in call])
    send_events(cast.tenant, make_call(trace_id="orphan")[1:])
    post(make_ingest_key(cast.tenant), b'{"type": "gap"}\n{ broken')
    with tenant_scope(cast.tenant.id):
        contract = ToolContract.model_validate(make_contract(name="get_weather"))
        register_contracts(cast.tenant, [contract], Publisher(key_id="key"))
        tool = Tool.objects.get(tenant=cast.tenant, name="get_weather")
        replay = drafted_and_replayed(cast, tool)
        create_key(cast.tenant, "executor", [Scope.INGEST])
        save_view(cast.admin, "Failures", "state:error")
        search = start_search(cast.admin, "needle", parse(""), now + timedelta(seconds=1))
        refused = list(
            RejectedEvent.objects.for_tenant(cast.tenant.id).values_list("id", flat=True)
        )
    run_slice(cast.tenant.id, search.id)
    run_replay(cast.tenant.id, replay)
    set_hold(cast, trace_id="orphan")
    alert = fired_alert(cast)
    erasure = preview_erasure(cast, "state:ok").id
    channel, _ = make_channel(cast, ChannelKind.WEBHOOK, url="https://alerts.example/")
    signed_in(cast.admin).post(f"/settings/channels/{channel.id}/test")
    act_on_prices(cast)
    act_on_notes(cast)
    with tenant_scope(cast.tenant.id):
        note = note_page(NoteFilter(), size=1).notes[0].id
    signed = sign(cast.tenant).signed_size
    # The family starts when its module is imported, maybe before midnight.
    fetched, notified = (milliseconds_after_start(ms).date() for ms in (500, 3_900))
    addresses = [
        *("/traces/", "/traces/?state=ok&trace=none", "/traces/trace-123", "/traces/many?row=60"),
        *("/traces/trace-123?find=nowhere", f"/traces/trace-123?call={ids['get_weather']}"),
        *("/calls/", "/calls/?live=1", "/calls/?q=state:eror+x", "/calls/?q=tool:none"),
        *(f"/calls/{fetched}/{ids['fetch_page']}", f"/calls/{notified}/{ids['notify']}"),
        "/traces/many/compare?with=trace-123&pair=1",
        compared_arguments(cast, "state:failed tool:late"),
        *("/apart/?q=trace:many&range=7d", "/apart/?q=state:failed+tool:late&range=7d"),
        *("/compare/?a=state:ok&b=NOT+state:ok&range=7d", "/compare/?a=agent:x"),
        *("/calls/open", "/calls/open?kind=orphan", "/calls/open?kind=crashed"),
        *(f"/calls/search/{search.id}", "/inbox/", "/inbox/?state=sent"),
        *(f"/inbox/{pk}" for pk in refused),
        *("/tools/", f"/tools/{tool.pk}", f"/tools/{tool.pk}/draft"),
        *(f"/tools/{tool.pk}/overview", f"/tools/{tool.pk}/drift", "/calls/?sort=duration"),
        *("/", "/violations/", "/latency/", "/evidence/", "/actions/", "/repeats/", "/approvals/"),
        *(f"/tools/{tool.pk}/draft/review", f"/tools/{tool.pk}/replays/{replay}"),
        *(f"/tools/{tool.pk}/effect", f"/tools/{tool.pk}/regression-set"),
        *("/reports/", f"/reports/{make(signed_in(cast.admin), kind='range', range='24h')}"),
        *("/alerts/?state=all", f"/alerts/{alert}", "/alerts/rules/", "/alerts/rules/new"),
        *("/alerts/maintenance/", "/notes/", f"/notes/{note}"),
        *("/agents/", "/conversations/", "/traces/trace-123/graph"),
        "/first-steps/",
        *("/skipped/", "/ledger/", "/ledger/entries/0", f"/ledger/consistency?old={signed}"),
        *("/settings/keys", "/settings/members", "/settings/password"),
        "/settings/service-accounts",
        *("/settings/channels", "/settings/channels/new/email", f"/settings/channels/{channel.id}"),
        *("/settings/prices", "/settings/prices/new", "/settings/prices/2026-01-01", "/costs/"),
        *("/settings/tenant", "/settings/redaction", "/settings/preferences"),
        *("/settings/holds", "/settings/erasures", f"/settings/erasures/{erasure}"),
    ]
    return Site(cast, addresses)


@dataclass(frozen=True)
class Visit:
    """What one load of a page had to fetch, and what axe says of the page."""

    sizes: list[float]
    findings: list[str]
    forced: list[str]
    """The findings in forced colours."""
    moving: int
    """Animations that run for somebody who wants few."""
    width: int
    """In CSS pixels, enlarged by 200 %."""


@pytest.fixture(scope="module")
def visits(
    browser: Browser, live_server: LiveServer, site: Site, pytestconfig: pytest.Config
) -> dict[str, Visit]:
    """Every page, loaded once with an empty cache: the admin's, then those without a session."""
    one_of = random.Random(sampling.seed(pytestconfig))
    schemes: list[list[Scheme]] = [["light"], ["dark"]]
    if not pytestconfig.getoption("sample"):
        schemes = [["light", "dark"]]
    with tenant_scope(site.cast.tenant.id):
        _, token = invite(site.cast.tenant, "Nina", Role.EDITOR)
    with browser.new_context(base_url=live_server.url) as context:
        page = context.new_page()
        sizes: list[float] = []
        network = context.new_cdp_session(page)
        network.on("Network.loadingFinished", lambda it: sizes.append(it["encodedDataLength"]))
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})

        def visit(address: str) -> Visit:
            sizes.clear()
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == (404 if address == "/nowhere" else 200), address
            assert urlsplit(page.url).path == urlsplit(address).path
            open_folds(page)
            loaded = sizes.copy()
            findings = accessibility_findings(page, one_of.choice(schemes))
            return Visit(
                loaded,
                findings,
                forced=findings_in_forced_colours(page),
                moving=running_animations(page),
                width=width_at_double_size(page),
            )

        sign_in(page, site.cast.admin)
        addresses = sampling.some(pytestconfig, "axe", site.addresses, PAGES_SAMPLED)
        visited = {address: visit(address) for address in addresses}
        context.clear_cookies()
        for address in ("/login", "/nowhere", f"/invitations/{token}"):
            visited[address] = visit(address)
    return visited


def test_axe_reports_no_serious_issues(visits: dict[str, Visit]) -> None:
    serious = {address: visit.findings for address, visit in visits.items() if visit.findings}
    assert not serious, json.dumps(serious, indent=1)


def test_axe_reports_no_serious_issues_in_forced_colours(visits: dict[str, Visit]) -> None:
    serious = {address: visit.forced for address, visit in visits.items() if visit.forced}
    assert not serious, json.dumps(serious, indent=1)


def test_nothing_moves_for_those_who_want_few_motions(visits: dict[str, Visit]) -> None:
    assert {address: visit.moving for address, visit in visits.items() if visit.moving} == {}


def test_pages_enlarged_by_200_percent_do_not_scroll_sideways(visits: dict[str, Visit]) -> None:
    wide = {address: visit.width for address, visit in visits.items()}
    assert {a: width for a, width in wide.items() if width > DOUBLE_SIZE["width"]} == {}


def test_motion_and_width_would_be_reported(page: Page, site: Site) -> None:
    """The proof that the tests above can fail."""
    sign_in(page, site.cast.admin)
    page.goto("/traces/")
    page.evaluate(
        "() => document.body.animate([{ opacity: 1 }, { opacity: 0.9 }], { duration: 60000 })"
    )
    page.evaluate("() => { document.querySelector('h1').style.width = '900px' }")
    assert running_animations(page) >= 1
    assert width_at_double_size(page) > DOUBLE_SIZE["width"]


def test_axe_would_report_an_issue(page: Page, site: Site) -> None:
    """The proof that the test above can fail, in light and in dark."""
    sign_in(page, site.cast.admin)
    page.goto("/traces/")
    page.evaluate("() => document.querySelector('input[type=search]').ariaLabel = ''")
    page.evaluate("() => document.querySelector('input[type=search]').placeholder = ''")
    page.evaluate("() => { document.querySelector('h1').style.color = 'light-dark(#111, #222)' }")
    reported = {":".join(one.split(":")[:2]) for one in accessibility_findings(page)}
    assert reported == {"light: label", "dark: color-contrast"}


def test_first_load_of_every_page_is_small(visits: dict[str, Visit]) -> None:
    for address, visit in visits.items():
        assert len(visit.sizes) >= 3, address  # the page, its styles and a script
        assert sum(visit.sizes) <= FIRST_LOAD, f"{address}: {sum(visit.sizes):,.0f} bytes"
