"""Identity providers. Older code would open a membership of a provider to other sessions, so it must
stop.
"""

import django.db.models.deletion
from django.db import migrations, models

import tenants.models
from config.postgresql.migrations import LibraryTables, Step

_ROLES = [("viewer", "Viewer"), ("editor", "Editor"), ("auditor", "Auditor"), ("admin", "Admin")]


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0007_service_accounts"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("identity_providers")],
            state_operations=[
                migrations.CreateModel(
                    name="IdentityProvider",
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
                        ("name", models.CharField(max_length=40)),
                        (
                            "kind",
                            models.CharField(choices=[("oidc", "OpenID Connect")], max_length=8),
                        ),
                        ("settings", models.JSONField()),
                        ("secret_box", models.BinaryField(null=True)),
                        ("role_by_group", models.JSONField(default=dict)),
                        (
                            "default_role",
                            models.CharField(choices=_ROLES, max_length=16, null=True),
                        ),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("disabled_at", models.DateTimeField(null=True)),
                        (
                            "tenant",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "identity_provider",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "name"), name="identity_provider_name_uniq"
                            )
                        ],
                    },
                ),
                migrations.AddField(
                    "membership",
                    "identity_provider_id",
                    models.UUIDField(blank=True, null=True),
                ),
            ],
        ),
        LibraryTables("identity_tables"),
    ]
