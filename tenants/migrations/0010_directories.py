"""Directories of identity providers (SCIM). Older code would let in whom a directory has removed, so
it must stop.
"""

import django.db.models.deletion
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

import tenants.models
from config.postgresql.migrations import Step

_SCOPES = [
    ("ingest", "Send events"),
    ("read", "Read figures and calls"),
    ("payloads", "Read payloads as well: arguments, outputs, error messages"),
    ("reveal", "Read the payload of one call or event at a time, each with a reason"),
    ("registry", "Register and change tools: drafts, versions, replays, definitions"),
    ("operate", "Work as an editor: rejected events, polling tools, saved views, checks"),
    ("holds", "Set and release legal holds"),
    ("erase", "Count and erase calls that a query selects"),
    ("admin", "Manage members, keys and settings, as an admin"),
    ("scim", "Send people and groups of an identity provider's directory (SCIM)"),
]


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_sso_only")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("directories")],
            state_operations=[
                migrations.CreateModel(
                    name="DirectoryUser",
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
                        ("identity_provider_id", models.UUIDField()),
                        ("external_id", models.CharField(max_length=191, null=True)),
                        ("user_name", models.CharField(max_length=200)),
                        ("display_name", models.CharField(max_length=200)),
                        ("is_active", models.BooleanField(null=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("changed_at", models.DateTimeField(auto_now=True)),
                        (
                            "tenant",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={"db_table": "directory_user"},
                ),
                migrations.CreateModel(
                    name="DirectoryGroup",
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
                        ("identity_provider_id", models.UUIDField()),
                        ("external_id", models.CharField(max_length=191, null=True)),
                        ("display_name", models.CharField(max_length=200)),
                        ("members", ArrayField(models.UUIDField(), default=list)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("changed_at", models.DateTimeField(auto_now=True)),
                        (
                            "tenant",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={"db_table": "directory_group"},
                ),
                migrations.AlterField(
                    "apikey",
                    "scopes",
                    ArrayField(models.CharField(choices=_SCOPES, max_length=16)),
                ),
            ],
        )
    ]
