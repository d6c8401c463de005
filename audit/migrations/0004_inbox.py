from typing import Any

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile

_FIELDS: dict[str, "models.Field[Any, Any]"] = {
    "resolution": models.TextField(
        choices=[
            ("accepted", "Stored"),
            ("duplicate", "Was stored already"),
            ("refused", "Refused again"),
            ("discarded", "Discarded"),
        ],
        null=True,
    ),
    "resolved_at": models.DateTimeField(null=True),
    "resolved_by_id": models.BigIntegerField(null=True),
    "resolved_by_name": models.TextField(null=True),
    "discard_reason": models.TextField(null=True),
    "redrive_batch_id": models.UUIDField(null=True),
    "redrive_edited": models.BooleanField(null=True),
}


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_models")]
    operations = [
        RunSQLFile("0004_inbox"),
        # The table is unmanaged: these tell the state alone.
        *(migrations.AddField("rejectedevent", name, field) for name, field in _FIELDS.items()),
    ]
