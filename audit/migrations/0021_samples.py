"""Auditors' samples: an erasure by older code would leave their texts about its calls."""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0020_streams")]
    operations = [
        Step("samples"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "Sample", [], {"db_table": "audit_sample", "managed": False}
                ),
                migrations.CreateModel(
                    "SamplePart", [], {"db_table": "audit_sample_part", "managed": False}
                ),
                migrations.CreateModel(
                    "SampledCall", [], {"db_table": "audit_sample_call", "managed": False}
                ),
            ]
        ),
    ]
