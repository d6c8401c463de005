"""Reports on their pages and as files: permissions, stored figures, recorded actions."""

import csv
import io
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID, uuid4

import pytest
from pypdf import PdfReader

from audit.reports.changes import HEADLINES
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.pages import HOSTILE, signed_in, text
from tests.support.reports import (
    days_ago,
    make,
    record,
    stored,
)

NOW = datetime.now(UTC)
HOSTILE = [
    *HOSTILE,
    '#eval("1+1") #read("/etc/passwd") $x^2$ *b* _i_ @ref <label> `raw` // no',
    '=HYPERLINK("http://evil")',
    "+1-1|cmd",
    '\\u{41} [link](x) #import "@preview/x:1.0.0"',
    "名前 😀 \u0645\u0631\u062d\u0628\u0627",
    "x" * 250,
]


def send_hostile(cast: Cast) -> None:
    key = make_ingest_key(cast.tenant)
    for n, hostile in enumerate(HOSTILE):
        violation = {"path": f"$.{hostile}"[:200], "code": "WRONG_TYPE", "expected": hostile}
        call = make_call(
            started_at=NOW - timedelta(minutes=5) + timedelta(seconds=n),
            tool_name=hostile,
            tool_version=hostile[:100],
            call_id=hostile[:100],
            trace_id=hostile[:100],
            output={"status": "error", "error": {"type": hostile[:60], "message": hostile}},
            guard={"strategy": "throw", "outcome": "failed", "violations": [violation]},
        )
        again = [
            event | {"invocation_id": str(uuid4()), "event_id": str(uuid4())} for event in call
        ]
        for one in again[1:]:
            one["invocation_id"] = again[0]["invocation_id"]
        answer = send_events(cast.tenant, [*call, *again], key=key)
        assert answer["rejected"] == []
        gap = {"type": "gap", "producer_id": hostile[:100], "from_seq": 1, "to_seq": 2, "count": 2}
        send_events(cast.tenant, [gap | {"reason": hostile[:60]}], key=key)


def file(cast: Cast, pk: UUID, kind: str) -> bytes:
    answer = signed_in(cast.viewer).get(f"/reports/{pk}/export.{kind}")
    assert answer.status_code == 200
    assert answer["Content-Disposition"].endswith(f'.{kind}"')
    content: bytes = answer.content
    return content


def words_of(pdf: bytes) -> str:
    """The text of a PDF without white space."""
    pages = (page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)
    return "".join("".join(pages).replace("\N{ZERO WIDTH SPACE}", "").split())


def test_report_is_created_read_and_listed(acme: Cast) -> None:
    noon = NOW.replace(hour=12) - timedelta(days=3)  # of one week in both time zones
    record(acme, noon, noon + timedelta(hours=2), 60)
    empty = text(signed_in(acme.viewer).get("/reports/").content.decode())
    assert "No reports yet" in empty
    assert "Create a report" not in empty
    pk = make(signed_in(acme.editor), "Europe/Berlin", kind="week", day=days_ago(NOW, 3))
    page = text(signed_in(acme.viewer).get(f"/reports/{pk}").content.decode())
    for words in ("Weekly report", "Europe/Berlin", acme.editor.username, "60"):
        assert words in page
    listed = signed_in(acme.viewer).get("/reports/").content.decode()
    assert str(pk) in listed
    assert "Create again" not in page


@pytest.mark.slow
def test_viewers_read_reports_and_other_roles_create_reports(acme: Cast) -> None:
    params = {"kind": "day", "day": days_ago(NOW, 0)}
    assert signed_in(acme.viewer).post("/reports/create", params).status_code == 403
    for member in (acme.editor, acme.auditor, acme.admin):
        pk = make(signed_in(member), **params)
        assert signed_in(acme.viewer).get(f"/reports/{pk}").status_code == 200
        assert signed_in(acme.viewer).post(f"/reports/{pk}/again").status_code == 403


def test_report_is_not_found_for_another_tenant(acme: Cast, globex: Cast) -> None:
    pk = make(signed_in(acme.admin), kind="day", day=days_ago(NOW, 0))
    for address in (f"/reports/{pk}", f"/reports/{pk}/export.pdf", f"/reports/{pk}/export.json"):
        assert signed_in(globex.admin).get(address).status_code == 404
    assert signed_in(globex.admin).post(f"/reports/{pk}/again").status_code == 404
    assert str(pk) not in signed_in(globex.admin).get("/reports/").content.decode()


def test_invalid_report_request_is_reported(acme: Cast) -> None:
    client = signed_in(acme.editor)
    for params in ({}, {"kind": "day", "day": "x\x00"}, {"kind": "range", "from": "9999-99-99"}):
        answer = client.post("/reports/create", params, follow=True)
        assert answer.status_code == 200
        assert "No report created" in text(answer.content.decode())
    assert client.get(f"/reports/{uuid4()}/export.pdf").status_code == 404
    assert client.get("/reports/?before=nonsense").status_code == 200
    pk = make(client, kind="day", day=days_ago(NOW, 0))
    assert client.get(f"/reports/{pk}/export.xls").status_code == 404


@pytest.mark.slow
def test_report_stays_unchanged_and_a_new_one_lists_later_arrivals(acme: Cast) -> None:
    client = signed_in(acme.auditor)
    record(acme, NOW - timedelta(hours=20), NOW - timedelta(hours=1), 50)
    first = make(client, kind="range", **{"from": f"{NOW - timedelta(days=2):%Y-%m-%d}"})
    before, page = stored(acme, first), client.get(f"/reports/{first}").content
    pdf = file(acme, first, "pdf")
    send_events(acme.tenant, make_call(started_at=NOW - timedelta(hours=2), tool_name="late"))
    client.post(f"/reports/{first}/again")
    assert stored(acme, first) == before
    assert file(acme, first, "pdf") == pdf
    again = client.get(f"/reports/{first}").content
    assert _without_csrf(again) == _without_csrf(page)

    answer = client.post(f"/reports/{first}/again")
    second = stored(acme, UUID(answer["Location"].rsplit("/", 1)[1]))
    assert second.of == before.of
    assert second.again_of == first
    since = second.figures["since"]
    assert (since["ledger_size"], second.ledger_size - since["ledger_size"]) == (
        before.ledger_size,
        2,
    )
    changed = {one["figure"]: (one["before"], one["now"]) for one in since["changes"]}
    calls = before.figures["volume"]["calls"]
    assert changed["Calls"] == (calls, calls + 1)
    for name, (section, member, _) in HEADLINES.items():
        then, now = before.figures[section][member], second.figures[section][member]
        assert (name in changed) == (then != now), name
    shown = text(client.get(f"/reports/{second.id}").content.decode())
    assert "Changes since the earlier report" in shown
    assert "2 events" in shown


def _without_csrf(page: bytes) -> str:
    return text(page.decode())


def test_exports_are_logged(acme: Cast) -> None:
    pk = make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 0))
    signed_in(acme.viewer).head(f"/reports/{pk}/export.pdf")
    for kind in ("pdf", "csv", "json"):
        file(acme, pk, kind)
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant=acme.tenant).order_by("id")
        logged = [(one.verb, one.user_name, one.subject) for one in actions]
    viewer = acme.viewer.username
    assert [verb for verb, *_ in logged] == ["report.create", *["report.export"] * 3]
    assert [one[1:] for one in logged[1:]] == [(viewer, "pdf"), (viewer, "csv"), (viewer, "json")]
    exported = stored(acme, make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 0)))
    listed = exported.figures["exports"]["listed"]
    assert {(one["user"], one["what"], one["form"]) for one in listed} == {
        (viewer, "report", kind) for kind in ("pdf", "csv", "json")
    }


def test_without_the_extra_a_pdf_says_what_to_install(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 0))
    client = signed_in(acme.auditor)
    button = re.compile(rf'<a[^>]*href="/reports/{pk}/export\.pdf"[^>]*>')
    for page in ("/reports/", f"/reports/{pk}"):
        [with_extra] = button.findall(client.get(page).content.decode())
        assert "download" in with_extra
    monkeypatch.setitem(sys.modules, "typst", None)  # as if it were not installed
    for page in ("/reports/", f"/reports/{pk}"):
        [without] = button.findall(client.get(page).content.decode())
        assert "download" not in without  # a browser shows the page that explains it
    answer = client.get(f"/reports/{pk}/export.pdf")
    assert answer.status_code == 501
    shown = text(answer.content.decode())
    assert "uv sync --extra pdf" in shown
    assert "pip install 'tooltrail-server[pdf]'" in shown
    for kind in ("csv", "json"):
        file(acme, pk, kind)
    with tenant_scope(acme.tenant.id):
        exported = Action.objects.filter(tenant=acme.tenant, verb="report.export").order_by("id")
        assert [one.subject for one in exported] == ["csv", "json"]


def test_exports_contain_the_report(acme: Cast) -> None:
    record(acme, NOW - timedelta(days=1), NOW, 80)
    pk = make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 1))
    report = stored(acme, pk)
    document = json.loads(file(acme, pk, "json"))
    assert document["figures"] == report.figures
    assert (document["id"], document["ledger_size"], document["tenant"]) == (
        str(pk),
        report.ledger_size,
        acme.tenant.name,
    )
    rows = list(csv.reader(io.StringIO(file(acme, pk, "csv").decode())))
    assert rows[0] == ["section", "list", "position", "figure", "value"]
    assert rows[-1] == ["# count", str(len(rows) - 2)]
    cells = {tuple(row[:4]): row[4] for row in rows[1:-1]}
    assert len(cells) == len(rows) - 2
    assert cells["volume", "", "", "calls"] == str(report.figures["volume"]["calls"])
    tool = report.figures["reliability"]["tools"][0]
    assert cells["reliability", "tools", "1", "tool_name"] == tool["tool_name"]
    assert cells["reliability", "tools", "1", "calls"] == str(tool["calls"])
    numbers = words_of(file(acme, pk, "pdf"))
    assert f"{report.figures['volume']['calls']:,}" in numbers
    assert str(pk) in numbers


@pytest.mark.slow
def test_hostile_text_is_escaped_in_every_format(acme: Cast) -> None:
    send_hostile(acme)
    pk = make(signed_in(acme.editor), kind="range", range="1h")
    page = signed_in(acme.viewer).get(f"/reports/{pk}").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for row in csv.reader(io.StringIO(file(acme, pk, "csv").decode())):
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for cell in row), row
    pdf = words_of(file(acme, pk, "pdf"))
    for hostile in HOSTILE:
        if hostile.isascii() and "\x00" not in hostile:
            assert "".join(hostile.split()) in pdf, hostile
    for shown in ("a\\u202eb", "\\u540d\\u524d", "\\u{1f600}", "\\u0645"):
        assert shown in pdf
    assert "root:" not in pdf


def test_empty_report_is_readable(acme: Cast) -> None:
    pk = make(signed_in(acme.editor), "Asia/Kathmandu", kind="month", day=days_ago(NOW, 40))
    page = text(signed_in(acme.viewer).get(f"/reports/{pk}").content.decode())
    assert "No calls ended in this range." in page
    assert "No exports." in page
    assert "Noexports." in words_of(file(acme, pk, "pdf"))


@pytest.mark.slow
def test_long_report_spans_several_pages(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    calls = [make_call(tool_name=f"tool.of.a.long.name.{n:03}", call_id=str(n)) for n in range(90)]
    send_events(acme.tenant, [event for call in calls for event in call], key=key)
    pk = make(signed_in(acme.editor), kind="day", day=days_ago(NOW, 0))
    reader = PdfReader(io.BytesIO(file(acme, pk, "pdf")))
    assert len(reader.pages) > 2
    fonts = {str(font["/BaseFont"]) for font in _fonts(reader)}
    # None of Typst's own fonts has such a name, so these names are the product's fonts.
    families = {name.partition("+")[2].partition("-")[0] for name in fonts}
    assert "Inter" in families <= {"Inter", "DejaVuSansMono"}
    assert all(page.mediabox.width == pytest.approx(595.28, abs=0.1) for page in reader.pages)
    metadata: Any = reader.metadata
    assert metadata.title.startswith("Daily report: ")
    assert "40 tools more." in " ".join(page.extract_text() for page in reader.pages)


def _fonts(reader: PdfReader) -> list[Any]:
    fonts: list[Any] = []
    for page in reader.pages:
        resources: Any = page["/Resources"]
        fonts += [font.get_object() for font in resources["/Font"].get_object().values()]
    return fonts


@pytest.mark.slow
def test_list_is_paged_by_key(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    from audit.pages.reports import views

    monkeypatch.setattr(views, "PAGE_SIZE", 3)
    client = signed_in(acme.editor)
    ids = [make(client, kind="day", day=days_ago(NOW, n)) for n in range(7)]
    seen: list[UUID] = []
    address = "/reports/"
    while True:
        context = client.get(address).context
        seen += [report.id for report, _ in context["reports"]]
        if not context["older"]:
            break
        make(
            client, kind="day", day=days_ago(NOW, 0)
        )  # a new report between two pages shifts nothing
        address = f"/reports/?before={context['older']}"
    assert seen == ids[::-1]


def test_contents_and_tools_lead_on(acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name="read <b>"))
    client = signed_in(acme.editor)
    page = client.get(f"/reports/{make(client, kind='range', range='24h')}").content.decode()
    contents = page[page.index('aria-label="Contents"') :]
    contents = contents[: contents.index("</nav>")]
    targets = re.findall(r'href="#([^"]*)"', contents)
    assert {"reliability", "violations", "latency", "what"} <= set(targets)
    assert all(page.count(f'id="{each}"') == 1 for each in targets)
    calls = re.search(r'href="(/calls/\?q=[^"]*)"\s+title="Calls of this tool', page)
    assert calls is not None
    listed = client.get(unescape(calls[1])).content.decode()
    assert listed.count('<td class="which">') == 1
    assert "read &lt;b&gt;" in listed
