"""Incidents: an erasure by older code would leave the timelines of its calls."""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0025_archive")]
    operations = [
        Step("incidents"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Incident", [], {"db_table": "incident", "managed": False}),
            ]
        ),
    ]
