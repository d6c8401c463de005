"""What another JSON Schema accepts that this one did not, and the other way round.

Pure: schemas in, changes out; nothing is fetched and no value validated. `comparison` walks two
schemas side by side, `reading` says what a schema means once references and dialects are out of
the way, `keywords` compares what stands alone, `effect` names what comes of it.
"""

from tools_registry.schema_diff.comparison import compare_schemas
from tools_registry.schema_diff.effect import Effect, SchemaChange

__all__ = ["Effect", "SchemaChange", "compare_schemas"]
