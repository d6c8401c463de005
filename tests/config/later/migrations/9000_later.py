from pathlib import Path

from django.db import migrations

from audit import migrations as present
from config.postgresql.migrations import OlderCodeMayGoOn

_LAST = max(path.stem for path in Path(present.__path__[0]).glob("[0-9]*.py"))

_INDEX_ANEW = """
    DROP INDEX invocation_run_idx;
    CREATE INDEX invocation_run_idx ON invocation (tenant_id, run_id) WHERE run_id IS NOT NULL;
"""


class Migration(migrations.Migration):
    dependencies = [("audit", _LAST)]
    operations = [
        migrations.RunSQL(_INDEX_ANEW, _INDEX_ANEW),
        OlderCodeMayGoOn("audit", "9000_later"),
    ]
