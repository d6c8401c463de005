"""A forgotten password: the mail, its link, what a stranger learns, and the operator's link."""

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from tenants.actions import operator
from tenants.identity.admission import Identity, admit
from tenants.models import Action, IdentityProvider, Membership, User
from tenants.scope import tenant_scope
from tests.support.factories import PASSWORD, Cast
from tests.support.mail import MailServer, link_in, mail_server, plain, use, waiting_tasks, work
from tests.support.pages import signed_in
from tests.support.second_factor import add_app

FORGOTTEN = reverse("password_forgotten")
HOME = reverse("home")
NEW = "another horse, another battery"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with mail_server() as one:
        use(monkeypatch, one.port)
        yield one


def with_address(user: User) -> str:
    user.email = f"{user.username.replace('@', '-')}@mail.example"
    user.save(update_fields=["email"])
    return user.email


def ask(address: str, **headers: str) -> Any:
    return Client().post(FORGOTTEN, {"address": address}, **headers)  # type: ignore[arg-type]  # REMOTE_ADDR


def choose(client: Client, link: str, password: str = NEW) -> Any:
    """Open a link and enter a new password; the answer."""
    form = client.get(link)
    assert form.status_code == 302, form.content
    assert link not in form["Location"], "the token leaves the address"
    return client.post(form["Location"], {"new_password1": password, "new_password2": password})


def verbs(cast: Cast, user: User) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        actions = Action.objects.filter(tenant=cast.tenant, subject=user.username)
        return [
            one.verb
            for one in actions.order_by("at", "id")
            if one.verb.startswith(("password.", "account."))
        ]


@pytest.mark.slow
def test_link_gives_a_new_password_once_and_ends_all_sessions(
    acme: Cast, server: MailServer
) -> None:
    user, address = acme.viewer, with_address(acme.viewer)
    assert FORGOTTEN in Client().get(reverse("account_login")).text
    old = Client()
    old.post(reverse("account_login"), {"username": user.username, "password": PASSWORD})
    assert old.get(HOME).status_code == 200
    secret = add_app(old)
    assert secret
    assert "is on its way" in ask(address).text
    assert work() == 0
    [(to, mail)] = server.mails
    assert to == address
    assert user.username in mail["Subject"]
    link = link_in(mail)
    client = Client()
    assert choose(client, link, "12345").status_code == 200, "a weak one is refused"
    assert choose(client, link)["Location"] == reverse("account_login")
    assert old.get(HOME).status_code == 302
    assert not UserSession.objects.filter(user=user).exists()
    pair = {"username": user.username, "password": NEW}
    answer = client.post(reverse("account_login"), pair)
    assert answer["Location"].startswith(reverse("mfa_authenticate")), "the factor stays"
    user.refresh_from_db()
    assert not user.check_password(PASSWORD)
    again = Client().get(link)
    assert again.status_code == 200
    assert "no longer works" in again.text
    assert verbs(acme, user) == ["password.ask", "password.reset"]


def test_stranger_learns_nothing_and_waits_no_longer(
    acme: Cast, row: IdentityProvider, server: MailServer
) -> None:
    known = with_address(acme.viewer)
    closed = with_address(acme.editor)
    User.objects.filter(pk=acme.editor.pk).update(is_active=False)
    by_provider = admit(row, Identity("x", "ada", {"groups": ["staff"]}), None)
    without_password = with_address(by_provider)
    addresses = [known, closed, without_password, "nobody@mail.example", known.upper()]
    pages = {ask(each).text for each in addresses}
    assert len(pages) == 1
    assert len(waiting_tasks()) == 5, "each leaves one task, whoever it is"
    assert work() == 0
    # Two mails, to the stored address.
    assert [to for to, _ in server.mails] == [known, known]
    assert "nobody@mail.example" not in "".join(plain(mail) for _, mail in server.mails)


@pytest.mark.slow
def test_too_many_questions_are_refused_by_address_and_by_source(server: MailServer) -> None:
    statuses = [ask("nina@mail.example").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]
    assert ask("other@mail.example").status_code == 200
    flood = [ask(f"n{n}@mail.example", REMOTE_ADDR="192.0.2.7").status_code for n in range(61)]
    assert flood == [200] * 60 + [429]
    assert ask("nina2@mail.example", REMOTE_ADDR="192.0.2.8").status_code == 200


def test_link_ends_after_three_hours_and_at_a_sign_in(
    acme: Cast, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(with_address(acme.viewer))
    work()
    link = link_in(server.mails[0][1])
    with monkeypatch.context() as patch:
        later = datetime.now() + timedelta(hours=3, seconds=2)  # noqa: DTZ005  # as Django's
        patch.setattr(PasswordResetTokenGenerator, "_now", lambda self: later)
        assert "no longer works" in Client().get(link).text
    assert Client().get(link).status_code == 302
    Client().post(
        reverse("account_login"), {"username": acme.viewer.username, "password": PASSWORD}
    )
    assert "no longer works" in Client().get(link).text
    assert "no longer works" in Client().get(link[:-3] + "abc").text
    assert "no longer works" in Client().get("/password/new/xx/yy-zz").text


def test_several_accounts_of_an_address_get_a_mail_each(acme: Cast, server: MailServer) -> None:
    address = with_address(acme.viewer)
    User.objects.filter(pk=acme.admin.pk).update(email=address)
    ask(address)
    work()
    subjects = " ".join(mail["Subject"] for _, mail in server.mails)
    assert acme.viewer.username in subjects
    assert acme.admin.username in subjects
    assert len(server) == 2


def test_address_counts_once_its_link_is_opened_by_the_owner(
    acme: Cast, server: MailServer
) -> None:
    client = signed_in(acme.viewer)
    page = reverse("account_address")
    assert client.get(page).status_code == 302, "a fresh confirmation"
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    assert client.post(page, {"address": "vic@mail.example"})["Location"] == reverse("mfa_index")
    acme.viewer.refresh_from_db()
    assert acme.viewer.email == ""
    work()
    [(to, mail)] = server.mails
    assert to == "vic@mail.example"
    link = link_in(mail)
    assert signed_in(acme.editor).get(link).status_code == 404
    assert Client().get(link).status_code == 302
    assert client.get(link).status_code == 200
    assert client.post(link)["Location"] == reverse("mfa_index")
    acme.viewer.refresh_from_db()
    assert acme.viewer.email == "vic@mail.example"
    assert client.get(link).status_code == 404, "it counts once"
    client.post(page, {"address": ""})
    acme.viewer.refresh_from_db()
    assert acme.viewer.email == ""
    assert verbs(acme, acme.viewer) == ["account.address"] * 2
    with tenant_scope(acme.tenant.pk):
        actions = Action.objects.filter(tenant=acme.tenant, verb="account.address")
        assert "mail.example" not in str([one.details for one in actions])


def test_without_a_server_the_operator_makes_the_link(
    acme: Cast, row: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "MAILERS", {})
    assert FORGOTTEN not in Client().get(reverse("account_login")).text
    assert "Ask the operator" in ask(with_address(acme.viewer)).text
    out = io.StringIO()
    call_command("passwordlink", acme.viewer.username, stdout=out)
    link = "/password/new/" + out.getvalue().strip().partition("/password/new/")[2]
    assert choose(Client(), link)["Location"] == reverse("account_login")
    acme.viewer.refresh_from_db()
    assert acme.viewer.check_password(NEW)
    assert verbs(acme, acme.viewer) == ["password.link", "password.reset"]
    with tenant_scope(acme.tenant.pk):
        made = Action.objects.get(tenant=acme.tenant, verb="password.link")
    assert made.user_name == operator()
    by_provider = admit(row, Identity("x", "eve", {"groups": ["staff"]}), None)
    for name, reason in (
        ("nobody at all", "unknown user"),
        (by_provider.username, "an identity provider signs this account in"),
    ):
        with pytest.raises(CommandError, match=reason):
            call_command("passwordlink", name)


def test_new_account_of_the_operator_gets_its_first_password_by_a_link(acme: Cast) -> None:
    fresh = User(username=f"fresh-{acme.tenant.slug}")
    fresh.set_unusable_password()
    fresh.save()
    with tenant_scope(acme.tenant.pk):
        Membership.objects.create(tenant=acme.tenant, user=fresh, role="admin")
    out = io.StringIO()
    call_command("passwordlink", fresh.username, stdout=out)
    link = "/password/new/" + out.getvalue().strip().partition("/password/new/")[2]
    choose(Client(), link)
    assert Client().login(username=fresh.username, password=NEW)


def test_where_only_providers_sign_in_no_password_is_forgotten(
    acme: Cast, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "BREAK_GLASS", acme.admin.username)
    assert FORGOTTEN not in Client().get(reverse("account_login")).text
    ask(with_address(acme.viewer))
    assert waiting_tasks() == []
