"""Price lists and the units of calls: older code shows no cost and need not know the tables."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_maintenance_windows")]
    operations = [
        Step("prices"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "PriceList", [], {"db_table": "price_list", "managed": False}
                ),
                migrations.CreateModel("UnitPath", [], {"db_table": "unit_path", "managed": False}),
            ]
        ),
        OlderCodeMayGoOn("audit", "0007_prices"),
    ]
