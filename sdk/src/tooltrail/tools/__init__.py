"""Tools as the ADK has them: definition, execution, call ids, registries, artifacts."""

from tooltrail.tools.canonical import canonical_stringify, compute_call_id

__all__ = ["canonical_stringify", "compute_call_id"]
