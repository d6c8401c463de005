"""Reasons on record that quoted the value of `type`, which may be payload, no longer do."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from config.postgresql.migrations import OlderCodeMayGoOn

_REWORD = """
    UPDATE rejected_event SET message = '`type` is unknown; expected toolExecutionStart,'
        ' toolExecutionEnd or gap'
    WHERE tenant_id = %s AND message LIKE 'Input tag %%'
"""


def reword(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """By tenant, as every statement about refused lines is."""
    with schema_editor.connection.cursor() as cursor:
        for tenant_id in apps.get_model("tenants", "Tenant").objects.values_list("pk", flat=True):
            cursor.execute(_REWORD, [tenant_id])


class Migration(migrations.Migration):
    dependencies = [("audit", "0026_runs_by_name"), ("tenants", "0010_invitation")]
    operations = [
        migrations.RunPython(reword, migrations.RunPython.noop, elidable=True),
        OlderCodeMayGoOn("audit", "0027_type_not_quoted"),
    ]
