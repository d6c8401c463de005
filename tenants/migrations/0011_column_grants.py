from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0010_invitation"),
        # Whose tables these are.
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]
    operations = [
        RunSQLFile("0011_column_grants"),
        # What it writes stays right; a change of password is refused until it is restarted.
        OlderCodeMayGoOn("tenants", "0011_column_grants"),
    ]
