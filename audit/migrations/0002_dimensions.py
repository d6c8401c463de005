"""Version of the agent, environment, service and principal of calls.

Older code cannot go on: it writes the principal under its former name.
"""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_tables")]
    operations = [Step("dimensions")]
