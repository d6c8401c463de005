"""When the worker retries a failed task.

For tasks that nobody defers a second time. Periodic tasks run again anyway.
"""

from typing import Final

from procrastinate import RetryStrategy

AGAIN: Final = RetryStrategy(linear_wait=5)
"""Retry immediately, then after 5, 10, 15 … seconds, after any error, until the task finishes or is
cancelled. A deadlock or a database restart passes by itself, a bug of ours with the next release.
So no running job is ever abandoned, and its page shows that it fails
(`config.templatetags.worker`).
"""
