"""An index of models' answers by time: older code need not know it."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_alert_trial")]
    operations = [
        Step("llm_usage_started"),
        OlderCodeMayGoOn("audit", "0011_llm_usage_started"),
    ]
