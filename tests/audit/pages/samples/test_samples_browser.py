"""A sample in a real browser: drawn, worked and signed by two people, and verified offline."""

import os
import secrets
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from tooltrail.cli.main import main
from tooltrail.evidence.sample.selection import commitment_of

from audit.sampling import collecting
from tenants.models import User
from tests.support.browser_errors import complaints
from tests.support.browser_pages import shoot
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import give_key
from tests.support.retention import apply_retention, set_retention
from tests.support.samples import arrive, second_auditor, sign_ledger
from tests.support.sign_in import sign_in

SHOTS = os.environ.get("SAMPLE_SHOTS")
"""A folder for screenshots, to look at."""


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker for this test, with a key of its own."""
    give_key(monkeypatch, tmp_path)


def download(page: Page, folder: Path) -> Path:
    """The sample's bundle, as the browser gets it."""
    with page.expect_download() as started:
        page.get_by_role("link", name="Evidence").last.click()
    path = folder / f"{secrets.token_hex(4)}.zip"
    started.value.save_as(path)
    return path


def verified(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `tooltrail verify` prints of a bundle that is genuine."""
    code = main(["verify", str(path)])
    out = capsys.readouterr().out
    assert code == 0, out
    return out


def conclude(page: Page, name: str, exception: str = "") -> None:
    """Conclude about the call that is open."""
    page.get_by_role("radio", name=name, exact=True).check()
    page.get_by_label("What does not conform").fill(exception)
    page.get_by_label("Note").fill("compared with the ticket")
    page.get_by_role("button", name="Save and go on").click()


@pytest.mark.slow
def test_sample_is_drawn_worked_signed_and_verified(
    acme: Cast, page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noted = complaints(page)
    arrive(acme, timezone.now() - timedelta(days=10), calls=3)
    for number in range(4):
        send_events(acme.tenant, make_call(tool_name="refund", case_id=f"case-{number}"))
    reviewer, nonce = second_auditor(acme), secrets.token_hex(32)
    sign_in(page, acme.auditor)
    page.goto("/samples/")
    shoot(page, "empty", SHOTS)
    page.get_by_label("Name").fill("Refunds, October")
    page.get_by_label("Or a number of calls").fill("7")
    page.get_by_label("SHA-256 of your nonce").fill(commitment_of(nonce))
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_text("waiting")).to_be_visible()
    shoot(page, "waiting", SHOTS)
    pk = UUID(page.url.rsplit("/", 1)[1])
    while collecting.run_slice(acme.tenant.id, pk):
        pass
    page.reload()
    expect(page.get_by_text("No checkpoint has the entry of the population yet")).to_be_visible()
    sign_ledger(acme)
    page.reload()
    shoot(page, "draw", SHOTS)
    page.get_by_label("Nonce").fill("0" * 64)
    page.get_by_role("button", name="Draw 7 calls").click()
    expect(page.get_by_text("This is not the nonce")).to_be_visible()
    page.get_by_label("Nonce").fill(nonce)
    page.get_by_role("button", name="Draw 7 calls").click()
    expect(page.get_by_text("7 calls without a conclusion")).to_be_visible()
    page.get_by_role("link", name="Conclude").first.click()
    page.get_by_role("radio", name="Exception", exact=True).check()
    page.get_by_role("button", name="Save and go on").click()
    expect(page.get_by_text("Describe the exception.")).to_be_visible()
    conclude(page, "Exception", "paid twice")
    conclude(page, "Cannot be judged")
    shoot(page, "work", SHOTS)
    for _ in range(5):
        conclude(page, "Pass")
    expect(page.get_by_text("2 errors")).to_be_visible()
    page.get_by_role("button", name="Sign as prepared").click()
    expect(page.get_by_text(f"Prepared by {acme.auditor.get_username()}")).to_be_visible()
    expect(page.get_by_role("button", name="Sign as reviewed")).to_have_count(0)
    _change_to(page, reviewer)
    page.goto(f"/samples/{pk}")
    shoot(page, "review", SHOTS)
    page.get_by_role("button", name="Sign as reviewed").click()
    expect(page.get_by_text(f"Reviewed by {reviewer.get_username()}")).to_be_visible()
    sign_ledger(acme)
    shoot(page, "signed", SHOTS)
    told = verified(download(page, tmp_path), capsys)
    assert "the seed draws these 7 of 7 calls" in told
    assert "2 errors in 7 calls, at most 2 in the population" in told
    set_retention(acme, payload_days=5)
    apply_retention(acme)
    erase(acme, "case:case-2")
    sign_ledger(acme)
    page.reload()
    later = verified(download(page, tmp_path), capsys)
    assert "8 erased" in later
    assert "2 errors in 7 calls, at most 2 in the population" in later
    page.goto("/samples/")
    expect(page.get_by_role("link", name="Refunds, October")).to_be_visible()
    shoot(page, "list", SHOTS)
    assert [each for each in noted if "status of 422" not in each] == []


def _change_to(page: Page, user: User) -> None:
    page.context.clear_cookies()
    sign_in(page, user)
