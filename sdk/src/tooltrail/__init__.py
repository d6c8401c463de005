"""Tooltrail's SDK: records the tool calls of LLM agents without slowing or breaking them."""

from tooltrail.producer import Stats
from tooltrail.redact import Redactor
from tooltrail.spool import SpoolFullError
from tooltrail.trail import Trail
from tooltrail.version import __version__

__all__ = ["Redactor", "SpoolFullError", "Stats", "Trail", "__version__"]
