"""The glossary's word for when people were last notified of an alert.

Older code cannot go on: it writes the column under its former name.
"""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0004_deliveries")]
    operations = [Step("notified")]
