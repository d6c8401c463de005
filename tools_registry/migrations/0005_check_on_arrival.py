from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tools_registry", "0004_tool_import")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0005_check_on_arrival")],
            state_operations=[
                migrations.AddField(
                    model_name="tool",
                    name="is_checked_on_arrival",
                    field=models.BooleanField(default=False, editable=False),
                ),
                migrations.AlterField(
                    model_name="toolchange",
                    name="kind",
                    field=models.CharField(
                        choices=[
                            ("created", "Created"),
                            ("described", "Described anew"),
                            ("draft_made", "Draft begun"),
                            ("draft_saved", "Draft saved"),
                            ("draft_discarded", "Draft discarded"),
                            ("published", "Published"),
                            ("made_current", "Made current"),
                            ("deprecated", "Deprecated"),
                            ("retired", "Retired"),
                            ("restored", "Restored"),
                            ("checks_on", "Checked on arrival from now on"),
                            ("checks_off", "No longer checked on arrival"),
                            ("kept", "Kept out"),
                            ("refused", "Refused"),
                        ],
                        max_length=20,
                    ),
                ),
            ],
        ),
    ]
