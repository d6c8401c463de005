"""End to end: an alert is tried, fired, notified, answered, and proved.

The executor, the web server, the browser and the process that sends are processes of their own.
This process does what the worker does, and has the two receivers.
"""

import json
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from standardwebhooks import Webhook

from audit.alerts.evaluation import evaluate
from audit.ledger.actions import enter_all_actions
from audit.models import Alert, ChannelKind
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.deliveries import (
    HOST,
    allow,
    deliver,
    mail_settings,
    make_channel,
    smtp_server,
    webhook_receiver,
)
from tests.support.factories import Cast, make_call, send_events
from tests.support.installation import clean_environment
from tests.support.ledger_log import own_folder, sign
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.slow

EXECUTOR = """
from tooltrail import Trail

trail = Trail()


@trail.tool(version="1")
def export_report(name: str) -> str:
    raise OSError("no space left")


for name in ("march", "april", "may"):
    try:
        export_report(name)
    except OSError:
        pass
"""


def run_executor(server: LiveServer, cast: Cast, folder: Path) -> None:
    """A program with the SDK makes three calls that fail, and sends them."""
    key = create_key(cast.tenant, "executor", [Scope.INGEST])[1]
    environment = clean_environment(
        TOOLTRAIL_URL=server.url,
        TOOLTRAIL_API_KEY=key,
        TOOLTRAIL_SPOOL_DIR=str(folder / "spool"),
    )
    subprocess.run([sys.executable, "-c", EXECUTOR], env=environment, check=True, timeout=60)


def failed_call(cast: Cast, at: datetime) -> None:
    """A call of the history."""
    output = {"status": "error", "error": {"type": "OSError", "message": "no"}}
    call = make_call(tool_name="export_report", started_at=at, is_error=True, output=output)
    send_events(cast.tenant, call)


def judge(cast: Cast) -> None:
    """Judge the rules as the worker does in the next minute."""
    with tenant_scope(cast.tenant.id):
        evaluate(timezone.now() + timedelta(minutes=2))


def make_rule(page: Page, channel: str) -> None:
    """From the filtered list of calls: try a rule on history, then save it."""
    page.goto("/calls/?q=tool:export_report+state:failed")
    page.get_by_role("link", name="Make an alert rule").click()
    expect(page.get_by_label("Calls", exact=True)).to_have_value("tool:export_report state:failed")
    page.get_by_label("Name", exact=True).fill("Reports fail")
    page.get_by_label("Measure").select_option("calls")
    page.get_by_label("Alert threshold").fill("0")
    page.get_by_label(channel).check()
    page.get_by_label("mail").check()
    page.get_by_label("Notify again").select_option("every 1 h")
    page.get_by_role("button", name="Try on the last 30 days").click()
    expect(page.locator("#tried")).to_contain_text("this would have fired 2 times")
    expect(page.get_by_role("link", name="View calls")).to_have_count(2)
    page.get_by_role("button", name="Save rule").click()
    expect(page.get_by_text("Notifies mail, on call, again every 1 h")).to_be_visible()


def download(page: Page, address: str, path: Path) -> Path:
    """A file, as the browser's user gets it."""
    answer = page.request.get(address)
    assert answer.ok, answer.text()
    path.write_bytes(answer.body())
    return path


def verified_actions(bundle: Path, keys: Path) -> list[dict[str, Any]]:
    """What the command finds good offline: the actions in a bundle, in their order."""
    verified = subprocess.run(
        [sys.executable, "-m", "tooltrail", "verify", str(bundle), "--key", str(keys)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with zipfile.ZipFile(bundle) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("events/"))
        lines = b"".join(archive.read(name) for name in names).splitlines()
    entries = [json.loads(line) for line in lines if line]
    return [entry for entry in entries if "verb" in entry]


def test_alert_is_tried_fired_received_acknowledged_and_proved(
    page: Page,
    acme: Cast,
    live_server: LiveServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own_folder(tmp_path, monkeypatch)
    allow(monkeypatch, HOST)
    for days in (2, 5):
        failed_call(acme, datetime.now(UTC) - timedelta(days=days))
    with webhook_receiver() as receiver, smtp_server() as mailbox:
        _, secrets = make_channel(acme, ChannelKind.WEBHOOK, "on call", url=receiver.url)
        make_channel(acme, ChannelKind.EMAIL, "mail", **mail_settings(mailbox.port))
        make_channel(acme, ChannelKind.WEBHOOK, "not chosen", url=f"{receiver.url}?other")
        sign_in(page, acme.editor)
        make_rule(page, "on call")
        run_executor(live_server, acme, tmp_path)
        judge(acme)
        deliver(acme)
    (request,) = receiver.requests
    event = Webhook(secrets["secret"]).verify(request.body, request.headers)
    ((recipients, mail),) = mailbox.mails
    with tenant_scope(acme.tenant.id):
        alert = Alert.objects.for_tenant(acme.tenant.id).get()
    assert event["type"] == "tooltrail.alert.fired"
    assert event["data"]["title"] == mail["Subject"] == alert.title
    assert event["data"]["facts"]["value"] == 3
    assert recipients == ["ann@example.com", "bob@example.com"]

    assert event["data"]["url"].endswith(f"/alerts/{alert.id}")
    page.goto(f"/alerts/{alert.id}")
    page.get_by_role("link", name="View its calls").click()
    expect(page.locator(".call-rows tbody tr")).to_have_count(3)
    page.go_back()
    page.get_by_label("Note").first.fill("disk is full, on it")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("disk is full, on it")).to_be_visible()

    enter_all_actions(acme.tenant.id)
    sign(acme.tenant)
    sign_in(page, acme.auditor)
    bundle = download(page, "/evidence/bundle.zip?range=1h", tmp_path / "evidence.zip")
    keys = download(page, "/ledger/keys", tmp_path / "keys.txt")
    actions = verified_actions(bundle, keys)
    own = [each for each in actions if each["verb"].startswith(("alert.", "alert_rule."))]
    assert [each["verb"] for each in own] == [
        *("alert_rule.create", "alert.fire", "alert.deliver", "alert.deliver"),
        "alert.acknowledge",
    ]
    assert own[-1]["details"]["note"] == "disk is full, on it"
    assert {each["details"]["channel"] for each in own[2:4]} == {"on call", "mail"}
