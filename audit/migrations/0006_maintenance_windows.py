"""Maintenance windows of alerts: older code notifies during them."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_notified")]
    operations = [
        Step("maintenance_windows"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "MaintenanceWindow", [], {"db_table": "maintenance_window", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0006_maintenance_windows"),
    ]
