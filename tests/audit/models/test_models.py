"""The unmanaged models agree with the tables that the SQL files create."""

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField
from django.db import connection, models

TYPES = {
    "uuid": models.UUIDField,
    "date": models.DateField,
    "timestamp with time zone": models.DateTimeField,
    "bigint": models.BigIntegerField,
    "integer": models.IntegerField,
    "double precision": models.FloatField,
    "text": models.TextField,
    "bytea": models.BinaryField,
    "boolean": models.BooleanField,
    "ARRAY": ArrayField,
    "jsonb": models.JSONField,
    "tstzmultirange": DateTimeRangeField,
}


@pytest.mark.parametrize("model", list(apps.get_app_config("audit").get_models()))
def test_model_fields_match_the_table_columns(model: type[models.Model]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns"
            " WHERE table_name = %s",
            [model._meta.db_table],
        )
        columns = {name: (TYPES[kind], nullable) for name, kind, nullable in cursor.fetchall()}
    fields = {
        field.column: (type(field), field.null)
        for field in model._meta.concrete_fields
        if field.column is not None
    }
    assert fields == columns
    assert not model._meta.managed
