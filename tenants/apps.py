"""The app of tenants, people, keys and actions."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Connects what is recorded about second factors and identities."""

    name = "tenants"

    def ready(self) -> None:
        """Import what needs the models of other apps."""
        from tenants.accounts import records

        records.connect()
