"""The ledger in a browser: from a call to its proof, and a check with progress."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, expect
from tooltrail.ledger import ProofFile

from audit.ledger import checks
from audit.models import LedgerCheck
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import keep, own_folder
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def test_call_leads_to_its_proof_file_without_javascript(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    call = make_call()
    send_events(acme.tenant, call)
    keep(acme.tenant, datetime.now(UTC))
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.auditor)
    at = datetime.fromisoformat(call[0]["started_at"]).astimezone(UTC)
    page.goto(f"/calls/{at:%Y-%m-%d}/{call[0]['invocation_id']}")
    page.get_by_text("End #1").click()
    page.get_by_role("link", name="Integrity proof").last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Entry #1")
    expect(page.get_by_text("valid", exact=True)).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download proof").click()
    file = ProofFile.parse(Path(download.value.path()).read_bytes())
    assert (file.index, len(file.proof)) == (1, 1)
    page.get_by_role("link", name="View call").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("get_weather in trace")
    context.close()


def test_ledger_check_is_watched_until_the_end(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, datetime.now(UTC))
    sign_in(page, acme.auditor)
    page.goto("/")
    page.get_by_role("link", name="Ledger").click()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        check = LedgerCheck.objects.for_tenant(acme.tenant.id).get()

    def work() -> None:
        checks.run_slice(acme.tenant.id, check.id)
        connections.close_all()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    expect(page.get_by_text("passed", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Verify again")).to_be_visible()
