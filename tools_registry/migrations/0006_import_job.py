from typing import Any

import django.contrib.postgres.fields
from django.db import migrations, models

import tools_registry.models
from config.postgresql.migrations import RunSQLFile

STATES = [
    ("looking", "Being looked at"),
    ("looked_at", "Waits for your word"),
    ("importing", "Being imported"),
    ("done", "Done"),
    ("cancelled", "Cancelled"),
]
ADDED: dict[str, "models.Field[Any, Any]"] = {
    "forms": django.contrib.postgres.fields.ArrayField(base_field=models.TextField()),
    "note": models.TextField(),
    "is_large": models.BooleanField(),
    "as_drafts": models.BooleanField(),
    "state": models.CharField(choices=STATES, max_length=20),
    "tool_count": models.PositiveIntegerField(),
    "done_count": models.PositiveIntegerField(default=0),
    "user_id": models.BigIntegerField(null=True),
    "user_name": models.CharField(max_length=150),
    "key_id": models.CharField(max_length=16),
    "reason": models.TextField(),
    "finished_at": models.DateTimeField(null=True),
}


class Migration(migrations.Migration):
    dependencies = [("tools_registry", "0005_check_on_arrival")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0006_import_job")],
            state_operations=[
                migrations.RemoveField(model_name="toolimport", name="document"),
                *(
                    migrations.AddField(model_name="toolimport", name=name, field=field)
                    for name, field in ADDED.items()
                ),
                migrations.CreateModel(
                    name="ImportedTool",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "import_id",
                                "ordinal",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("tenant_id", models.UUIDField()),
                        ("import_id", models.UUIDField()),
                        ("ordinal", models.IntegerField()),
                        ("position", models.IntegerField()),
                        ("path", models.TextField()),
                        ("twin", models.TextField()),
                        ("is_own", models.BooleanField()),
                        ("content", models.TextField()),
                        ("drafts", tools_registry.models.JSONTextField(null=True)),
                        ("published", tools_registry.models.JSONTextField(null=True)),
                        ("outcome", tools_registry.models.JSONTextField(null=True)),
                    ],
                    options={"db_table": "tool_import_tool", "managed": False},
                ),
            ],
        ),
    ]
