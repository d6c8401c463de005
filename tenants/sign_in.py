"""Sign-in, with a limit against guessing passwords.

A failure is recorded in the tenant in which the session would open. Failures are counted in the
database, because several processes serve the form. An attempt is counted before its password is
checked; otherwise many simultaneous attempts would all be checked before one is counted. The count
is per name **and** address, so that nobody can lock out others by failing with their name.
Behind proxies set `TOOLTRAIL_PROXIES`, their number, so that the client's own address is known
(`config.http.proxies`); otherwise all clients share one address, so there is one count per name.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from config.http.proxies import client_address
from tenants.accounts.policy import opens_by_password
from tenants.models import SignInFailure, User
from tenants.sessions import record_session

FAILURES_ALLOWED = 10
"""Within `FAILURES_COUNT_FOR`: 960 attempts a day, few for guessing but enough for a person."""

FAILURES_COUNT_FOR = timedelta(minutes=15)


class SignInForm(AuthenticationForm):
    """User name and password; after too many failures it refuses the right password, too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"

    def clean(self) -> dict[str, Any]:
        """Check the pair. Raises the same ValidationError for a wrong name and a wrong password."""
        attempt = _begin_attempt(self._digest(), timezone.now())
        if attempt is None:
            self._record("too many attempts")
            minutes = FAILURES_COUNT_FOR.total_seconds() / 60
            raise ValidationError(
                f"Too many failed sign-ins. Wait {minutes:.0f} minutes, then try again.",
                code="throttled",
            )
        try:
            cleaned = super().clean()
        except ValidationError:
            self._record("wrong password, or the account is closed")
            raise
        user = self.get_user()
        if user is not None and not opens_by_password(user):
            # The same answer: whether a password is right must stay unknown where none counts.
            self._record("only providers sign in here")
            raise self.get_invalid_login_error()
        attempt.delete()
        return cleaned

    def _record(self, reason: str) -> None:
        # An unknown name is not recorded: people sometimes type a password into that field.
        name = self.cleaned_data.get("username", "")
        user = User.objects.filter(username=name).first() if name else None
        record_session(user, "session.refuse", reason=reason)

    def _digest(self) -> bytes:
        # A digest, because people sometimes type their password into the name field.
        name = self.cleaned_data.get("username", "").casefold()
        address = client_address(self.request) if self.request else ""
        return hashlib.sha256(f"{name}\0{address}".encode()).digest()


def _begin_attempt(digest: bytes, now: datetime) -> SignInFailure | None:
    """Count an attempt as failed before its password is checked; None after too many failures."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Serializes the attempts for one name and address across all processes.
        key = int.from_bytes(digest[:8], signed=True)
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        SignInFailure.objects.filter(at__lte=now - FAILURES_COUNT_FOR).delete()
        if SignInFailure.objects.filter(digest=digest).count() >= FAILURES_ALLOWED:
            return None
        return SignInFailure.objects.create(digest=digest, at=now)
