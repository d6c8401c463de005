import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_tenants_stay")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="suspended_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="time_zone",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="user",
            name="default_range",
            field=models.CharField(blank=True, default="", max_length=8),
        ),
        migrations.AddField(
            model_name="user",
            name="theme",
            field=models.CharField(blank=True, default="", max_length=8),
        ),
        migrations.AddField(
            model_name="user",
            name="time_zone",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0004_settings")],
            state_operations=[
                migrations.AddField(
                    model_name="apikey",
                    name="replaced_by_id",
                    field=models.UUIDField(blank=True, null=True),
                ),
                migrations.CreateModel(
                    name="TenantSetting",
                    fields=[
                        (
                            "tenant",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                primary_key=True,
                                related_name="+",
                                serialize=False,
                                to="tenants.tenant",
                            ),
                        ),
                        ("payload_days", models.IntegerField(blank=True, null=True)),
                        ("index_days", models.IntegerField(blank=True, null=True)),
                        (
                            "redact_names",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list
                            ),
                        ),
                        (
                            "redact_patterns",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.TextField(), default=list
                            ),
                        ),
                        ("erased_to", models.BigIntegerField(default=0)),
                        ("index_from", models.DateField(blank=True, null=True)),
                    ],
                    options={"db_table": "tenant_setting"},
                ),
                migrations.CreateModel(
                    name="Tombstone",
                    fields=[
                        (
                            "id",
                            models.UUIDField(editable=False, primary_key=True, serialize=False),
                        ),
                        ("slug", models.CharField(max_length=63)),
                        ("name", models.CharField(max_length=200)),
                        ("begun_at", models.DateTimeField(auto_now_add=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("operator", models.CharField(max_length=150)),
                        ("ledger_size", models.BigIntegerField()),
                        ("ledger_root", models.BinaryField()),
                    ],
                    options={"db_table": "tombstone"},
                ),
            ],
        ),
    ]
