"""Run a transaction again that PostgreSQL aborted because of others."""

import random
import time
from collections.abc import Callable

from django.db import DatabaseError, DataError, IntegrityError, OperationalError

from audit.index.window import INDEX_DAYS
from config.postgresql.schema import FENCE_STATE, SCHEMA

_ATTEMPTS = 5
_RETRY_SECONDS = 0.02  # times the attempt, at random, so that rival transactions do not collide
_SERIALIZATION_STATES = {"40001", "40P01"}
_NO_PARTITION_STATE = "23514"
_KNOWN_STATE = "23505"


def with_retries[T](run: Callable[[], T]) -> T:
    """Run a whole transaction. Run it again if PostgreSQL aborts it because of others.

    Raises django.db.OperationalError if the last attempt fails, or at once for any other cause.
    Raises SchemaError, which is one, if the database has become newer than this process.
    """
    try:
        return _with_retries(run)
    except OperationalError:
        raise
    except DatabaseError:
        SCHEMA.check()  # if a newer schema is the cause, this raises the clearer error
        raise


def _with_retries[T](run: Callable[[], T]) -> T:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return run()
        except DataError as error:
            if _state(error) != FENCE_STATE or attempt == _ATTEMPTS:
                raise
            SCHEMA.check()
        except OperationalError as error:
            if _state(error) not in _SERIALIZATION_STATES or attempt == _ATTEMPTS:
                raise
            time.sleep(random.uniform(0, _RETRY_SECONDS * attempt))  # noqa: S311  # protects nothing
        except IntegrityError as error:
            if _state(error) == _KNOWN_STATE:
                continue  # a batch id or a call was already stored; the next attempt sees it
            if _state(error) != _NO_PARTITION_STATE or attempt == _ATTEMPTS:
                raise
            INDEX_DAYS.refresh()  # a partition was dropped; its events now go to the inbox
    raise OperationalError("the same batch id is being stored repeatedly")


def is_of_rivals(error: Exception) -> bool:
    """Whether another transaction stored the same first, or was preferred in a deadlock."""
    return _state(error) in {_KNOWN_STATE, *_SERIALIZATION_STATES}


def _state(error: Exception) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)
