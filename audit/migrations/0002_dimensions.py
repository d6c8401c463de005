"""Memory of signers, the call that names a trace's run; version of the agent, environment, service
and principal of calls.

Older code cannot go on: it writes the principal under its former name.
"""

from django.db import migrations

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_tables")]
    operations = [Step("signer_memory"), Step("run_of_trace"), Step("dimensions")]
