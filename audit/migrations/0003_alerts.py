"""Rules of alerts, and alerts: older code judges no rules."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_dimensions")]
    operations = [
        Step("alerts"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Alert", [], {"db_table": "alert", "managed": False}),
                migrations.CreateModel(
                    "AlertRule", [], {"db_table": "alert_rule", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0003_alerts"),
    ]
