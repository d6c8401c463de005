"""Which failures of a task pass by themselves, and when the worker tries again.

For tasks that nobody defers a second time; what is periodic comes again anyway.
"""

from typing import Final

from django.db import InterfaceError, OperationalError
from procrastinate import RetryStrategy
from procrastinate.exceptions import ConnectorException

AGAIN: Final = RetryStrategy(
    linear_wait=5,
    # A deadlock or a database that starts anew; the last is what deferring a task makes of them.
    retry_exceptions=(OperationalError, InterfaceError, ConnectorException),
)
"""At once, then after 5, 10, 15 … seconds, until it comes to its end or somebody cancels it: what
is under way is never left so with nobody to go on.
"""
