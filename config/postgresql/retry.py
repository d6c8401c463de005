"""When the worker tries a task again that has failed.

For tasks that nobody defers a second time; what is periodic comes again anyway.
"""

from typing import Final

from procrastinate import RetryStrategy

AGAIN: Final = RetryStrategy(linear_wait=5)
"""At once, then after 5, 10, 15 … seconds, whatever it failed by, until it comes to its end or
somebody cancels it. A deadlock and a database that starts anew pass by themselves, a mistake of
ours with the next release: what is under way is never left so with nobody to go on, and its page
says that it fails (`config.templatetags.worker`).
"""
