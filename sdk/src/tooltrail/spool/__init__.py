"""Where events wait until the server has them."""

from tooltrail.spool.base import Spool
from tooltrail.spool.batch import Batch, DamagedError, SpoolFullError

__all__ = ["Batch", "DamagedError", "Spool", "SpoolFullError"]
