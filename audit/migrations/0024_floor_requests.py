"""Requests to lower the retention floor, and who previewed an erasure.

Older code would let one person confirm an erasure below the floor.
"""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0023_boards"), ("tenants", "0018_retention_floor")]
    operations = [
        Step("floor_requests"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "FloorRequest", [], {"db_table": "floor_request", "managed": False}
                ),
            ]
        ),
    ]
