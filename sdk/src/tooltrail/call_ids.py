"""The call id of whatever arguments a recorded function was given.

Owns what names a call whose arguments are not plain JSON: their JSON form. The canonical text
itself is `tools.canonical`'s.
"""

from typing import Any

from pydantic_core import to_jsonable_python

from tooltrail.capture import without_generators
from tooltrail.redact import opaque
from tooltrail.tools.canonical import compute_call_id


def call_id_of(tool: str, args: Any) -> str:
    """Name a call by its content, as `compute_call_id` does, whatever `args` hold.

    What JSON has no word for counts as its JSON form: a date as its text, an unknown object as
    its class. All calls of a tool whose arguments have none (a cycle) have the same id.
    """
    try:
        return compute_call_id(tool, args)
    except TypeError:
        pass
    try:
        plain = to_jsonable_python(without_generators(args), fallback=opaque, bytes_mode="base64")
        return compute_call_id(tool, plain)
    except (TypeError, ValueError):
        return compute_call_id(tool, None)
