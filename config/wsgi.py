"""The WSGI entry point for granian. It exits with an unfit role or a newer schema."""

import gc
import sys
import time

from django.db import DatabaseError, connection
from django.urls import get_resolver

from audit.intake.balance import balance
from config.http.application import application as application
from config.postgresql.processes import announce
from config.readiness import why_unfit
from config.version import VERSION

_DATABASE_WITHIN_S = 20.0
_TRY_EVERY_S = 0.2


def _refuse_if_unfit() -> None:
    # Retry: a process that replaces a dead one must survive that PostgreSQL is just starting.
    deadline = time.monotonic() + _DATABASE_WITHIN_S
    while True:
        try:
            if reason := why_unfit():
                sys.exit(f"tooltrail: refusing to serve: {reason}")
            return
        except DatabaseError as error:
            if time.monotonic() > deadline:
                message = str(error).splitlines()[0]
                sys.exit(f"tooltrail: the database cannot be reached: {message}")
            time.sleep(_TRY_EVERY_S)
        finally:
            connection.close()


_refuse_if_unfit()
announce("web", VERSION)
balance()  # created now, so that a process without senders counts as idle
# Views are imported before the first request. Without this, the first burst of small requests after
# a start was rejected within 134 ms, later ones within 45 ms (bench/burst.py).
_ = get_resolver().url_patterns
# Permanent objects are excluded from garbage collection: a full collection took 30 ms in the middle
# of a request.
gc.collect()
gc.freeze()
