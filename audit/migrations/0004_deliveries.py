"""Channels and deliveries of alerts: older code sends none and need not know the tables."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_alerts")]
    operations = [
        Step("deliveries"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "AlertChannel", [], {"db_table": "alert_channel", "managed": False}
                ),
                migrations.CreateModel(
                    "AlertDelivery", [], {"db_table": "alert_delivery", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0004_deliveries"),
    ]
