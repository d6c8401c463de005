"""Invitations, the tenant chosen last, and accounts whose password an admin knows."""

import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import tenants.models
from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile

_INITIAL = """
    UPDATE app_user SET has_initial_password = true
    WHERE username IN (
        SELECT subject FROM action WHERE tenant_id = %(tenant_id)s AND verb = 'member.add'
          AND details @> '{"is_new_account": true}'
    ) AND id NOT IN (
        SELECT user_id FROM action WHERE tenant_id = %(tenant_id)s AND verb = 'password.change'
          AND user_id IS NOT NULL
    )
"""


def mark_initial_passwords(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Find the accounts that an admin made with a password of the server's, never changed since.

    By tenant: its record says which accounts it made, and a change of password was on record
    in every tenant of its user.
    """
    with schema_editor.connection.cursor() as cursor:
        for tenant_id in apps.get_model("tenants", "Tenant").objects.values_list("pk", flat=True):
            cursor.execute(_INITIAL, {"tenant_id": tenant_id})


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_redact_otlp")]
    operations = [
        migrations.AddField(
            "user", "has_initial_password", models.BooleanField(default=False, db_default=False)
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0010_invitation")],
            state_operations=[
                migrations.AddField(
                    "user",
                    "last_tenant",
                    models.ForeignKey(
                        null=True,
                        blank=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                migrations.CreateModel(
                    name="Invitation",
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
                        ("label", models.CharField(max_length=150)),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("viewer", "Viewer"),
                                    ("editor", "Editor"),
                                    ("auditor", "Auditor"),
                                    ("admin", "Admin"),
                                ],
                                max_length=16,
                            ),
                        ),
                        ("token_sha256", models.BinaryField()),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("expires_at", models.DateTimeField()),
                        ("accepted_at", models.DateTimeField(null=True)),
                        ("revoked_at", models.DateTimeField(null=True)),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "tenant",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={"db_table": "invitation"},
                ),
            ],
        ),
        migrations.RunPython(mark_initial_passwords, migrations.RunPython.noop, elidable=True),
        OlderCodeMayGoOn("tenants", "0010_invitation"),
    ]
