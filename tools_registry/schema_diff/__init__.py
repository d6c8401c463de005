"""Compares two JSON Schemas: which values the new one accepts or refuses in addition.

Pure: schemas in, changes out; nothing is fetched and no value is validated. `comparison` walks two
schemas side by side, `reading` resolves references and older dialects, `alternatives` compares
`anyOf`, `oneOf` and `allOf`, `keywords` compares independent keywords, `effect` defines the
effects of a change.
"""

from tools_registry.schema_diff.comparison import compare_schemas
from tools_registry.schema_diff.effect import Effect, SchemaChange

__all__ = ["Effect", "SchemaChange", "compare_schemas"]
