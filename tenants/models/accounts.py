"""Accounts of people, and failed attempts to sign in."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person's account. The memberships say what it may see."""

    time_zone = models.CharField(max_length=64, blank=True, default="")
    """The time zone in which the user reads times; '': the browser's."""
    theme = models.CharField(max_length=8, blank=True, default="")
    """`light` or `dark`; '': the system's."""
    default_range = models.CharField(max_length=8, blank=True, default="")
    """Default time range of pages with figures, as in a URL; '': the page's own."""
    last_tenant = models.ForeignKey(
        "Tenant", models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The tenant last chosen or joined: the next session opens there (`tenants.sessions`)."""
    has_initial_password = models.BooleanField(default=False, db_default=False)
    """Whether an admin knows the password: the account was made before invitations existed."""

    _CHANGED: ClassVar = (
        *("password", "last_login", "is_staff", "is_active", "has_initial_password", "email"),
        *("time_zone", "theme", "default_range", "last_tenant"),
    )
    """The columns of an existing account that the application may write (its grants)."""

    class Meta:
        db_table = "app_user"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the account; of an existing one only `_CHANGED`, as the database refuses more."""
        if not self._state.adding:
            kwargs.setdefault("update_fields", self._CHANGED)
        super().save(*args, **kwargs)


class SignInFailure(models.Model):
    """A failed sign-in attempt (`tenants.sign_in`); deleted after 15 minutes."""

    digest = models.BinaryField()
    """SHA-256 of user name and address."""
    at = models.DateTimeField()

    class Meta:
        db_table = "sign_in_failure"
        indexes: ClassVar = [
            # For the count of recent failures, before every password check.
            models.Index(fields=["digest", "at"], name="sign_in_failure_digest_at_idx")
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S}"
