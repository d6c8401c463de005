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
    """The same for a JSON body."""
    return request_body({"application/json": schema})
