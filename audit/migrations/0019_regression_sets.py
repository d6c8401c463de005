"""Regression sets: an erasure by older code would leave their copies of its calls."""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0018_drift_query")]
    operations = [
        Step("regression_sets"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "RegressionSet", [], {"db_table": "tool_regression", "managed": False}
                ),
                migrations.CreateModel(
                    "RegressionCase", [], {"db_table": "tool_regression_case", "managed": False}
                ),
            ]
        ),
    ]
