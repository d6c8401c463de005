"""Signing in, and slowing down whoever guesses; refusals are on record where a session would open.

Failures are counted in the database, because several processes serve the same form, and before
a password is checked: else those that come at once are all checked before one is counted. They are
counted per name **and** address, so that nobody can lock others out by failing in
their name. Behind a proxy the address is the one that `TOOLTRAIL_PROXIES` makes trustworthy
(`config.http.proxies`); without it all clients share one address, hence one count per name.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from config.http.proxies import client_address
from tenants.models import SignInFailure, User
from tenants.sessions import record_session

FAILURES_ALLOWED = 10
"""Within `FAILURES_COUNT_FOR`; guessing gets 960 tries a day, a forgetful person enough."""

FAILURES_COUNT_FOR = timedelta(minutes=15)


class SignInForm(AuthenticationForm):
    """User name and password; refuses even the right one after too many wrong ones."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"

    def clean(self) -> dict[str, Any]:
        """Check the pair. Raises ValidationError, the same for a wrong name and password."""
        attempt = _begin_attempt(self._digest(), timezone.now())
        if attempt is None:
            self._record("too many attempts")
            minutes = FAILURES_COUNT_FOR.total_seconds() / 60
            raise ValidationError(
                f"Too many failed attempts. Wait {minutes:.0f} minutes and try again.",
                code="throttled",
            )
        try:
            cleaned = super().clean()
        except ValidationError:
            self._record("wrong password, or the account is closed")
            raise
        attempt.delete()
        return cleaned

    def _record(self, reason: str) -> None:
        # Of a name that is nobody's nothing: people do type their password into the wrong field.
        name = self.cleaned_data.get("username", "")
        user = User.objects.filter(username=name).first() if name else None
        record_session(user, "session.refuse", reason=reason)

    def _digest(self) -> bytes:
        # A digest, because people do type their password into the wrong field.
        name = self.cleaned_data.get("username", "").casefold()
        address = client_address(self.request) if self.request else ""
        return hashlib.sha256(f"{name}\0{address}".encode()).digest()


def _begin_attempt(digest: bytes, now: datetime) -> SignInFailure | None:
    """Count an attempt as failed until its password proves right; None if there were too many."""
    with transaction.atomic(), connection.cursor() as cursor:
        # One after the other for a name and address, over all processes.
        key = int.from_bytes(digest[:8], signed=True)
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        SignInFailure.objects.filter(at__lte=now - FAILURES_COUNT_FOR).delete()
        if SignInFailure.objects.filter(digest=digest).count() >= FAILURES_ALLOWED:
            return None
        return SignInFailure.objects.create(digest=digest, at=now)
