"""The digest that identifies one published form of a tool, the same in SDK and server."""

from hashlib import sha256
from typing import Any

from tooltrail.tools.canonical import canonical_stringify


def tool_digest(
    *,
    name: str,
    description: str,
    input_schema: Any,
    output_schema: Any = None,
    trusted: bool = False,
    ephemeral: bool = False,
    on_collision: str = "throw",
) -> str:
    """Compute the digest of a tool's contract: `sha256:` and the hash of its canonical text.

    The tool's `meta` is not covered: labels may change without making a new version.
    Raises TypeError for schemas that are not plain JSON.
    """
    members = {
        "name": name,
        "description": description,
        "input_schema": input_schema,
        "output_schema": output_schema,
        "trusted": trusted,
        "ephemeral": ephemeral,
        "on_collision": on_collision,
    }
    return "sha256:" + sha256(canonical_stringify(members).encode()).hexdigest()
