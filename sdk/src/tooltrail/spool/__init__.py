"""Where events wait until the server has them."""

from tooltrail.spool.base import Batch, Spool, SpoolFullError

__all__ = ["Batch", "Spool", "SpoolFullError"]
