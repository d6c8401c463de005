"""Grants on shared tables. Some belong to Django's apps, which need our table of users first."""

from django.db import migrations

from config.postgresql.migrations import SchemaFiles


class Migration(migrations.Migration):
    replaces = [("tenants", "0011_column_grants")]
    dependencies = [
        ("tenants", "0001_tables"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]
    operations = [SchemaFiles("shared_tables")]
