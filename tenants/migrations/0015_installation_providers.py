"""Identity providers of the installation. Older code would open their memberships to other sessions,
so it must stop.
"""

from django.db import migrations, models

import tenants.models
from config.postgresql.migrations import Step

_KINDS = [("oidc", "OpenID Connect"), ("saml", "SAML 2.0")]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_saml")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("installation_providers")],
            state_operations=[
                migrations.CreateModel(
                    name="InstallationProvider",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=tenants.models.new_id,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("name", models.CharField(max_length=40, unique=True)),
                        ("kind", models.CharField(choices=_KINDS, max_length=8)),
                        ("settings", models.JSONField()),
                        ("secret_box", models.BinaryField(null=True)),
                        ("roles", models.JSONField(default=list)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("disabled_at", models.DateTimeField(null=True)),
                    ],
                    options={"db_table": "installation_provider"},
                ),
                migrations.AddField(
                    "membership",
                    "installation_provider_id",
                    models.UUIDField(blank=True, null=True),
                ),
            ],
        )
    ]
