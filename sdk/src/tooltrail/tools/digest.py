"""The digests of a tool, the same in SDK and server: of its contract, and of what was served."""

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


def definition_digest(definition: Any) -> str:
    """Compute the digest of a tool's definition as a server serves it: `sha256:` and the hash.

    It covers every member: description, schemas, title, annotations, `_meta`. The digest of a
    contract (`tool_digest`) covers the contract alone. Raises TypeError if it is not plain JSON.
    """
    return "sha256:" + sha256(canonical_stringify(definition).encode()).hexdigest()
