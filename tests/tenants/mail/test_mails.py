"""Invitations by mail, through a real mail server: up, down, encrypted, refusing."""

import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from tenants.mail import outgoing
from tenants.models import Action, Invitation, Scope, Tenant, User
from tenants.scope import tenant_scope
from tests.support.api_client import program
from tests.support.factories import Cast
from tests.support.mail import (
    PASSWORD,
    USER,
    MailServer,
    free_port,
    html,
    link_in,
    mail_server,
    make_certificate,
    plain,
    queued_bytes,
    use,
    work,
)
from tests.support.pages import signed_in

NINA = "nina@mail.example"
NEW = "a password of her own"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with mail_server() as one:
        use(monkeypatch, one.port)
        yield one


def invite(cast: Cast, email: str = NINA) -> Any:
    form = {"label": "Nina", "role": "editor", "email": email}
    return signed_in(cast.admin).post(reverse("member_list"), form)


def ends(cast: Cast) -> list[tuple[str, Any]]:
    """What became of the tenant's mails."""
    with tenant_scope(cast.tenant.pk):
        actions = Action.objects.filter(tenant=cast.tenant, verb__startswith="mail.")
        return [(one.verb, one.details.get("reason")) for one in actions.order_by("at", "id")]


def test_invited_person_joins_by_the_mail_and_has_this_address(
    acme: Cast, server: MailServer
) -> None:
    page = invite(acme).text
    assert "is on its way to" in page
    assert NINA in page
    assert "/invitations/" not in page.replace("/settings/members/invitations/", "")
    assert len(server) == 0, "the page does not send"
    waiting = queued_bytes()
    for secret in (b"/invitations/", NINA.encode()):
        assert secret not in waiting
    assert work() == 0
    [(to, mail)] = server.mails
    assert to == NINA
    assert (mail["Subject"], mail["Auto-Submitted"]) == (
        "Invitation to Acme in Tooltrail",
        "auto-generated",
    )
    assert "as editor" in plain(mail)
    link = link_in(mail)
    assert f'href="http://localhost{link}"' in html(mail).replace(":8000", "")
    name = f"nina@{acme.tenant.slug}"
    answer = Client().post(link, {"username": "nina", "password1": NEW, "password2": NEW})
    assert answer["Location"] == reverse("home")
    assert User.objects.get(username=name).email == NINA
    with tenant_scope(acme.tenant.pk):
        invited = Action.objects.get(tenant=acme.tenant, verb="member.invite")
    assert invited.details["is_mailed"] is True
    assert NINA not in str(invited.details)
    assert ends(acme) == [("mail.deliver", None)]


def test_handed_over_link_gives_no_address(acme: Cast, server: MailServer) -> None:
    page = invite(acme, email="").text
    assert "/invitations/" in page
    assert work() == 0
    assert len(server) == 0
    with tenant_scope(acme.tenant.pk):
        assert Invitation.objects.get(tenant=acme.tenant).email == ""


def test_without_a_server_the_form_asks_for_no_address(acme: Cast) -> None:
    assert settings.MAILERS == {} or not outgoing.is_on()
    page = signed_in(acme.admin).get(reverse("member_list")).text
    assert "Mail the link to" not in page
    api = program(acme.tenant, Scope.ADMIN)
    answer = api.send("POST", "invitations", {"label": "Nina", "email": NINA})
    assert (answer.status_code, answer.json()["parameter"]) == (422, "email")


def test_invitation_by_api(acme: Cast, server: MailServer) -> None:
    api = program(acme.tenant, Scope.ADMIN)
    made = api.do("invitations", {"label": "Nina", "email": NINA})
    assert (made["url"], made["email"]) == ("", NINA)
    assert api.get("invitations")["items"][0]["email"] == NINA
    for wrong in ("no address", "a@b.example\nBcc: c@d.example", "ä@b.example"):
        answer = api.send("POST", "invitations", {"label": "N", "email": wrong})
        assert (answer.status_code, answer.json()["parameter"]) == (422, "email"), wrong
    assert work() == 0
    assert [to for to, _ in server.mails] == [NINA]


@pytest.mark.parametrize(
    "name",
    [
        "Acme\r\nBcc: eve@evil.example",
        "<script>alert(1)</script>",
        '"><a href="https://evil.example">',
        "https://evil.example/login",
        "{{ letter.link }}",
        "a\u202eb\x85c",
        "ünïcödé ✉ " * 30,
    ],
)
def test_hostile_name_adds_no_header_link_or_markup(
    acme: Cast, server: MailServer, name: str
) -> None:
    Tenant.objects.filter(pk=acme.tenant.pk).update(name=name[:200])
    invite(acme)
    assert work() == 0
    [(_, mail)] = server.mails
    assert set(mail.keys()) <= {
        *("Content-Type", "MIME-Version", "Subject", "From", "To", "Date", "Message-ID"),
        *("Auto-Submitted", "X-Peer", "X-MailFrom", "X-RcptTo"),
    }
    assert "\n" not in mail["Subject"]
    assert "evil.example" not in plain(mail).replace(link_in(mail), "")
    assert html(mail).count('href="') == html(mail).count("<a ") == 1
    assert "<script" not in html(mail)


def test_dead_server_slows_no_page_and_gets_the_mail_when_it_is_back(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    use(monkeypatch, port)
    invite(acme)
    invite(acme, "otto@mail.example")
    assert work() == 2
    monkeypatch.setattr(outgoing, "EmailMultiAlternatives", None)  # it is not tried now
    assert work() == 2
    monkeypatch.undo()
    with mail_server(port) as server:
        use_again(monkeypatch, port)
        assert work() == 0
        assert sorted(to for to, _ in server.mails) == [NINA, "otto@mail.example"]
        assert len({mail["Message-ID"] for _, mail in server.mails}) == 2
    assert ends(acme) == [("mail.deliver", None)] * 2


def use_again(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    """The server that was down a moment ago; what waits, waits."""
    from django.core.cache import cache

    options = {"host": "127.0.0.1", "port": port, "timeout": 5}
    monkeypatch.setattr(settings, "MAILERS", {"default": {"OPTIONS": options}})
    cache.clear()


@pytest.mark.slow
def test_silent_server_is_tried_once_in_a_while(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts connections and says nothing: the worst one for a worker."""
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        use(monkeypatch, silent.getsockname()[1], timeout=1)
        for number in range(4):
            invite(acme, f"n{number}@mail.example")
        begun = time.monotonic()
        assert work() == 4
        assert time.monotonic() - begun < 3, "only the first one waits"


@pytest.mark.slow
def test_server_that_asks_for_encryption_and_a_password(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path)
    with mail_server(certificate=certificate) as server:
        right = {"use_tls": True, "username": USER, "password": PASSWORD}
        use(monkeypatch, server.port, **right)
        invite(acme)
        assert work() == 1, "nobody trusts its certificate"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        for wrong in ({"use_tls": True}, right | {"password": "wrong"}, {}):
            use(monkeypatch, server.port, **wrong)
            invite(acme)
            assert work() == 1, wrong
        assert len(server) == 0
        use(monkeypatch, server.port, **right)
        invite(acme)
        assert work() == 0
        assert [to for to, _ in server.mails] == [NINA]


@pytest.mark.parametrize("part", ["to_recipient", "answer"])
def test_refusal_for_good_ends_the_mail_and_another_one_does_not(
    acme: Cast, server: MailServer, part: str
) -> None:
    invite(acme)
    setattr(server, part, "451 later")
    assert work() == 1
    assert ends(acme) == []
    setattr(server, part, "550 nobody here")
    assert work() == 0
    assert ends(acme) == [("mail.undelivered", "The mail server refuses it: 550.")]
    assert len(server) == 0


def test_mail_that_is_of_no_use_any_more_is_not_sent(
    acme: Cast, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite(acme)
    later = time.time() + 8 * 24 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert work() == 0
    assert len(server) == 0
    assert [verb for verb, _ in ends(acme)] == ["mail.undelivered"]


@pytest.mark.slow
def test_nobody_mails_an_address_without_end(acme: Cast, server: MailServer) -> None:
    pages = [invite(acme).text for _ in range(6)]
    assert ["Too many mails" in page for page in pages] == [False] * 5 + [True]
    assert "on its way" in invite(acme, "other@mail.example").text
    assert work() == 0
    assert len(server) == 6


def test_command_tries_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "MAILERS", {})
    with pytest.raises(CommandError, match="set TOOLTRAIL_MAIL_HOST"):
        call_command("sendtestemail", NINA)
    use(monkeypatch, free_port())
    with pytest.raises(CommandError, match="ConnectionRefusedError"):
        call_command("sendtestemail", NINA)
    with mail_server() as server:
        use(monkeypatch, server.port)
        call_command("sendtestemail", NINA)
        [(to, mail)] = server.mails
    assert (to, mail["From"]) == (NINA, settings.DEFAULT_FROM_EMAIL)
