"""Second factors for tests: the code of an authenticator app, and a passkey in Chromium."""

import base64
import hashlib
import hmac
import re
import struct
import time
from typing import TYPE_CHECKING, Any

from django.test import Client
from django.urls import reverse

from tests.support.factories import PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Page

_STEP_S = 30


def totp(secret: str, steps_ahead: int = 0) -> str:
    """The code that an app shows for a secret (RFC 6238: SHA-1, six digits, 30 s)."""
    counter = int(time.time()) // _STEP_S + steps_ahead
    digest = hmac.digest(base64.b32decode(secret), struct.pack(">Q", counter), hashlib.sha1)
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4]) & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def add_app(client: Client) -> str:
    """Add an authenticator app to the signed-in account, by its pages. Returns the secret."""
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    page = client.get(reverse("mfa_activate_totp")).content.decode()
    (secret,) = re.findall(r"<code[^>]*>([A-Z2-7]{32})</code>", page)
    answer = client.post(reverse("mfa_activate_totp"), {"code": totp(secret)})
    assert answer.status_code == 302, answer.content.decode()
    return str(secret)


def add_virtual_authenticator(page: "Page") -> Any:
    """A passkey in the tab's browser that is used without a finger. Returns its session."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session
