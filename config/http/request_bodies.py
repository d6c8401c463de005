"""Request bodies in the description of the API. ninja does not read these bodies."""

from collections.abc import Mapping
from typing import Any


def request_body(
    contents: Mapping[str, Mapping[str, Any]], description: str = ""
) -> dict[str, Any]:
    """Return the member of an OpenAPI operation: the schemas of its body by media type."""
    body: dict[str, Any] = {
        "required": True,
        "content": {media_type: {"schema": schema} for media_type, schema in contents.items()},
    }
    return {"requestBody": body | ({"description": description} if description else {})}


def json_body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a JSON body. The schema's own definitions stand where they are used: a reference
    would lead outside the description.
    """
    definitions = schema.get("$defs", {})
    members = {name: value for name, value in schema.items() if name != "$defs"}
    return request_body({"application/json": _resolved(members, definitions)})


def _resolved(value: Any, definitions: Mapping[str, Any]) -> Any:
    match value:
        case {"$ref": str(reference), **others}:
            definition = definitions[reference.removeprefix("#/$defs/")]
            return _resolved({**definition, **others}, definitions)
        case Mapping():
            return {name: _resolved(member, definitions) for name, member in value.items()}
        case list():
            return [_resolved(item, definitions) for item in value]
        case _:
            return value
