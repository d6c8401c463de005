"""What a reader does with charts: zoom, crosshair, legend, thresholds, files, and by keyboard."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.accessibility import accessibility_findings, open_folds
from tests.support.browser_errors import complaints
from tests.support.browser_pages import chart_colours
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.sampled("charts in a browser", 3)

CHARTS = ("calls", "errors", "latency", "violations")


@pytest.fixture
def busy(acme: Cast) -> Cast:
    """Five hours of calls, every sixth of which fails."""
    now = datetime.now(UTC)
    failed = {"status": "error", "error": {"type": "FATAL", "message": "no"}}
    failed["meta"] = {"took_ms": 1}
    violation = {"path": "$.name", "severity": "error", "code": "WRONG_TYPE"}
    violation |= {"expected": "string", "received": "number"}
    guard = {"strategy": "warn", "outcome": "passed", "violations": [violation]}
    events = []
    for n in range(100):
        more: dict[str, Any] = {"output": failed} if n % 6 == 0 else {}
        more |= {"guard": guard} if n % 10 == 0 else {}
        at = now - timedelta(minutes=3 * n, seconds=1)
        events += make_call(started_at=at, duration_ms=20 + 3 * n, tool_name="search", **more)
    send_events(acme.tenant, events, key=make_ingest_key(acme.tenant))
    return acme


def canvas(page: Page, chart: str) -> Locator:
    return page.locator(f"#chart-{chart} .chart-canvas")


def drag(page: Page, chart: str, first: float, last: float) -> None:
    """Drag across a chart, from one part of its width to another."""
    expect(canvas(page, chart).locator("canvas")).to_have_count(1)
    canvas(page, chart).scroll_into_view_if_needed()
    box = canvas(page, chart).bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], middle, steps=6)


def params(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_dragged_time_becomes_the_range_and_back_leads_back(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/?range=6h&pause=1")
    for chart, kind in (("calls", "bars"), ("latency", "lines")):
        drag(page, chart, 0.4, 0.7)
        expect(page.locator(f"#chart-{chart} .chart-range")).to_be_visible()
        page.mouse.up()
        page.wait_for_url("**from=*")
        start, end = (datetime.fromisoformat(params(page)[name]) for name in ("from", "to"))
        assert timedelta(hours=1) <= end - start <= timedelta(hours=3), kind
        assert (start.minute % 15, end.minute % 15) == (0, 0)
        assert "range" not in params(page)
        expect(page.locator(".range-says").first).to_contain_text(f"{start:%Y-%m-%d %H:%M}")
        expect(page.locator(".chart-canvas canvas")).to_have_count(4)
        page.go_back()
        page.wait_for_url("**range=6h*")
        chosen = page.get_by_role("link", name="6 h", exact=True)
        expect(chosen).to_have_attribute("aria-current", "true")
        expect(page.locator(".chart-canvas canvas")).to_have_count(4)
    drag(page, "errors", 0.4, 0.7)
    page.keyboard.press("Escape")
    page.mouse.up()
    expect(page.locator("#chart-errors .chart-range")).to_be_hidden()
    page.wait_for_timeout(200)
    assert "range=6h" in page.url
    assert heard == []


def test_a_line_is_at_the_same_part_in_all_charts_of_the_page(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/?range=6h&pause=1")
    box = canvas(page, "calls").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    for chart in CHARTS:
        line = page.locator(f"#chart-{chart} .chart-cross")
        expect(line).to_be_visible()
        place, own = line.bounding_box(), canvas(page, chart).bounding_box()
        assert place is not None and own is not None
        assert 0.42 < (place["x"] - own["x"]) / own["width"] < 0.64, chart
    page.mouse.move(5, 5)
    expect(page.locator(".chart-cross:visible")).to_have_count(0)
    page.goto("/latency/?range=6h&pause=1")  # that of durations has other parts
    canvas(page, "over-time").hover()
    expect(
        page.locator("#chart-tokens .chart-cross, #chart-over-time .chart-cross").first
    ).to_be_visible()
    expect(page.locator("#chart-histogram .chart-cross")).to_be_hidden()


def test_names_hide_their_series_until_the_tab_is_closed(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/?range=6h&pause=1")
    legend = page.get_by_role("group", name="Calls by state, shown series")
    all_colours = chart_colours(page, "calls")
    legend.get_by_role("button", name="OK").click()
    expect(legend.get_by_role("button", name="OK")).to_have_attribute("aria-pressed", "false")
    assert chart_colours(page, "calls") < all_colours
    page.reload()
    expect(legend.get_by_role("button", name="OK")).to_have_attribute("aria-pressed", "false")
    with page.expect_response("**/?range=6h*"):
        page.get_by_role("link", name="Refresh").click()
    expect(legend.get_by_role("button", name="OK")).to_have_attribute("aria-pressed", "false")
    legend.get_by_role("button", name="Failed").click(modifiers=["Shift"])
    expect(legend.locator('[aria-pressed="true"]')).to_have_text(["Failed"])
    legend.get_by_role("button", name="Failed").focus()
    page.keyboard.press("Shift+Enter")  # all again
    expect(legend.locator('[aria-pressed="false"]')).to_have_count(0)
    assert chart_colours(page, "calls") == all_colours


def test_a_chart_is_read_zoomed_and_opened_by_keyboard(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/?range=6h&pause=1")
    chart = page.get_by_role("slider", name="Error rate, chart")
    chart.focus()
    page.keyboard.press("End")
    last = chart.get_attribute("aria-valuetext") or ""
    assert re.search(r"Failed [\d.]+ %", last.replace("\u00a0", " ")), last
    page.keyboard.press("ArrowLeft")
    assert chart.get_attribute("aria-valuetext") != last
    expect(page.locator("#chart-calls .chart-cross")).to_be_visible()
    expect(page.locator("#chart-errors .chart-tip")).to_contain_text("Failed")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile("3 chosen$"))
    page.keyboard.press("Enter")
    page.wait_for_url("**from=*")
    start, end = (datetime.fromisoformat(params(page)[name]) for name in ("from", "to"))
    assert end - start == timedelta(minutes=45)
    page.get_by_role("slider", name="Calls by state, chart").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url("**/calls/?q=since*")
    assert heard == []


def test_a_threshold_is_a_line_that_the_address_has(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/?range=6h&pause=1")
    figure = page.locator("#chart-latency")
    figure.get_by_label("Duration: options").click()
    figure.get_by_label("Threshold line").fill("400 ms")
    figure.get_by_role("button", name="Draw").click()
    page.wait_for_url("**line-latency=400*")
    assert params(page)["range"] == "6h"
    expect(figure.get_by_role("button", name="Threshold 400")).to_be_visible()
    page.get_by_role("link", name="24 h", exact=True).click()
    page.wait_for_url("**range=24h*")
    expect(figure.get_by_role("button", name="Threshold 400")).to_be_visible()
    page.goto("/?range=6h&line-latency=5+%25")
    expect(figure.get_by_role("alert")).to_have_text(
        "The threshold must be a duration such as 2 s or 500 ms."
    )
    assert chart_colours(page, "latency") > 2
    assert heard == []


def test_a_chart_is_saved_as_a_picture_and_as_a_table(
    page: Page, busy: Cast, tmp_path: Path
) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/?range=6h&pause=1")
    figure = page.locator("#chart-calls")
    saved = {}
    for kind in ("PNG", "CSV"):
        figure.get_by_label("Calls by state: options").press("Enter")
        with page.expect_download() as download:
            figure.get_by_role("button", name=f"Save as {kind}").press("Enter")
        path = tmp_path / kind
        download.value.save_as(path)
        assert download.value.suggested_filename == f"calls-by-state.{kind.lower()}"
        saved[kind] = path.read_bytes()
        expect(figure.get_by_label("Calls by state: options")).to_be_focused()
    png = saved["PNG"]
    assert png.startswith(b"\x89PNG")
    box = canvas(page, "calls").bounding_box()
    assert box is not None
    assert int.from_bytes(png[16:20]) >= 2 * int(box["width"])
    head, *rows = csv.reader(io.StringIO(saved["CSV"].decode("utf-8-sig")))
    assert head[:5] == ["from", "to", "Failed", "Open", "OK"]
    assert sum(int(row[2]) for row in rows) == 17
    assert sum(int(row[4]) for row in rows) == 83
    assert all(datetime.fromisoformat(row[0]) < datetime.fromisoformat(row[1]) for row in rows)
    assert heard == []


def test_lists_have_their_calls_over_time(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/calls/?q=tool:search+since:5h")
    expect(canvas(page, "list").locator("canvas")).to_have_count(1)
    drag(page, "list", 0.5, 0.9)
    page.mouse.up()
    page.wait_for_url("**since*until*")
    assert params(page)["q"].startswith("tool:search since:20")
    expect(canvas(page, "list").locator("canvas")).to_have_count(1)
    page.go_back()
    page.wait_for_url("**q=tool:search+since:5h")
    page.goto("/traces/")
    expect(canvas(page, "list").locator("canvas")).to_have_count(1)
    drag(page, "list", 0.7, 0.95)
    page.mouse.up()
    page.wait_for_url("**from=*")
    expect(page.locator(".picked")).to_contain_text(" to ")
    page.get_by_role("link", name="Remove the range").click()
    page.wait_for_url(re.compile(r"/traces/\??$"))
    page.locator("#chart-list summary", has_text="Show as table").click()
    page.locator("#chart-list td a").last.click()
    page.wait_for_url("**/traces/?from=*state=*")
    expect(page.locator(".traces tbody tr").first).to_be_visible()
    page.goto("/violations/?range=6h&pause=1")
    expect(canvas(page, "violations").locator("canvas")).to_have_count(1)
    assert heard == []


def test_a_board_is_made_by_forms_and_zooms_as_a_whole(page: Page, busy: Cast) -> None:
    sign_in(page, busy.editor)
    heard = complaints(page)
    page.goto("/boards/")
    page.get_by_label("Name").fill("Search")
    page.get_by_label("Share with all members").check()
    page.get_by_role("button", name="Make board").click()
    more = page.get_by_role("group", name="Panel 5")
    more.get_by_label("Shows").select_option("latency")
    more.get_by_label("Query").fill("tool:search")
    more.get_by_label("Threshold").fill("100 ms")
    page.get_by_role("button", name="Save board").click()
    expect(page.locator(".chart-canvas canvas")).to_have_count(5)
    canvas(page, "panel-0").hover()
    expect(page.locator(".chart-cross:visible")).to_have_count(5)
    drag(page, "panel-4", 0.3, 0.9)
    page.mouse.up()
    page.wait_for_url("**from=*")
    expect(page.locator(".chart-canvas canvas")).to_have_count(5)
    expect(page.get_by_role("button", name="Threshold 100")).to_be_visible()
    assert heard == []


def test_forced_colours_and_reduced_motion_keep_charts_readable(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.goto("/?range=6h&pause=1")
    for chart in CHARTS:
        assert chart_colours(page, chart) > 2, chart
    tones = page.locator("#chart-calls .legend i").evaluate_all(
        "(all) => all.map((it) => getComputedStyle(it).color)"
    )
    assert len(set(tones)) == len(tones)
    assert (
        page.locator("#chart-calls .legend i").first.evaluate(
            "(it) => getComputedStyle(it).forcedColorAdjust"
        )
        == "none"
    )
    assert heard == []


def test_without_javascript_boards_and_thresholds_work(
    browser: Browser, live_server: LiveServer, busy: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, busy.viewer)
    page.goto("/boards/")
    page.get_by_label("Name").fill("Mine")
    page.get_by_role("button", name="Make board").click()
    page.get_by_role("button", name="Save board").click()
    expect(page.get_by_role("region", name="Calls by state, table")).to_be_visible()
    expect(page.get_by_role("button", name="Save as PNG")).to_be_hidden()
    page.get_by_label("Error rate: options").click()
    page.locator("#chart-panel-1").get_by_label("Threshold line").fill("5 %")
    page.locator("#chart-panel-1").get_by_role("button", name="Draw").click()
    expect(page.get_by_text("Threshold 5.00")).to_have_count(1)
    context.close()


@pytest.mark.sampled("axe in a browser", 1)
def test_axe_reports_no_serious_issues(page: Page, busy: Cast) -> None:
    sign_in(page, busy.editor)
    page.goto("/boards/")
    page.get_by_label("Name").fill("Mine")
    page.get_by_role("button", name="Make board").click()
    form = page.url
    for address in (
        "/?range=6h",
        "/calls/",
        "/traces/",
        "/boards/",
        form,
        form.removesuffix("/edit"),
    ):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        open_folds(page)
        page.evaluate("document.querySelectorAll('.chart-menu').forEach(it => { it.open = true })")
        assert accessibility_findings(page) == [], address


def test_pages_with_charts_fit_a_phone_screen(page: Page, busy: Cast) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, busy.editor)
    page.goto("/boards/")
    page.get_by_label("Name").fill("x" * 60)
    page.get_by_role("button", name="Make board").click()
    form = page.url
    for address in (
        "/?range=6h",
        "/calls/",
        "/traces/",
        "/violations/",
        form,
        form.removesuffix("/edit"),
    ):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
