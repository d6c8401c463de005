"""Agent, model, environment and service of decisions: older code writes none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0016_receipts")]
    operations = [
        Step("decision_dimensions"),
        OlderCodeMayGoOn("audit", "0017_decision_dimensions"),
    ]
