"""The query of an analysis of drift: older code analyzes all calls and writes none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0017_decision_dimensions")]
    operations = [Step("drift_query"), OlderCodeMayGoOn("audit", "0018_drift_query")]
