"""Computes the call id of any arguments, including those that are not plain JSON.

Owns the conversion of such arguments to JSON. The canonical text is made by `tools.canonical`.
"""

from typing import Any

from pydantic_core import to_jsonable_python

from tooltrail.capture import without_generators
from tooltrail.redact import opaque
from tooltrail.tools.canonical import compute_call_id


def call_id_of(tool: str, args: Any) -> str:
    """Compute the content-based call id, as `compute_call_id` does, for any `args`.

    Values that JSON cannot hold count as their JSON form: a date as its text, an unknown object
    as its class name. If the arguments have no JSON form (a cycle), all calls of the tool get
    the same id.
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
