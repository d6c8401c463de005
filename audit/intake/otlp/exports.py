"""Process one export request of a signal, whichever protocol it came by."""

from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.utils import timezone

from audit.events.body import UnreadableBodyError, inflate
from audit.events.limits import LimitExceededError
from audit.events.spans import UnreadableTraceError
from audit.intake import metrics
from audit.intake.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.intake.otlp.answers import success
from audit.intake.otlp.recording import Recorded, record_spans
from audit.intake.otlp.signals import MediaType, Signal
from audit.intake.principals import hide_in_spans
from audit.intake.quota import quota
from config.http.quota import QuotaExceededError
from config.postgresql.schema import why_unavailable
from tenants.keys import ApiKeyIdentity, KeyRefused, authenticate
from tenants.models import Scope


class RefusedError(Exception):
    """A request is rejected. `status` is HTTP's; with `retry_after_s` a retry can succeed."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


def identity(authorization: str, api_key: str, address: str) -> ApiKeyIdentity:
    """Whose request it is, by its headers `Authorization` and `x-api-key`, and its address.

    Raises RefusedError.
    """
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer":
        token = api_key
    if not token.strip():
        raise RefusedError(401, "Send an API key in the header x-api-key: tt_…")
    try:
        return authenticate(token.strip(), Scope.INGEST, address)
    except KeyRefused as refusal:
        raise RefusedError(refusal.status, refusal.message) from refusal
    except (OperationalError, InterfaceError) as error:
        raise RefusedError(503, why_unavailable(error), RETRY_AFTER_S) from error


def export(
    signal: Signal,
    key: ApiKeyIdentity,
    read: Callable[[], bytes],
    *,
    size: int,
    encoding: str,
    media_type: MediaType,
    counted: metrics.Request,
) -> bytes:
    """Store the calls and decisions of a request. Returns the body of the answer.

    `read` returns the body as sent, of at most `size` bytes. Raises RefusedError.
    """
    try:
        quota().check((key.tenant_id, key.key_id))
        with ADMISSION.share(key.tenant_id, size):
            sent = read()
            counted.lap("read")
            counted.signal(signal.name)
            if not signal.readers:
                counted.received(len(sent))
                return success(signal, Recorded(), media_type)
            with ADMISSION.slot(key.tenant_id):
                counted.lap("wait")
                body = inflate(sent, encoding)
                counted.lap("inflate")
                sent_spans = signal.readers[media_type](body)
                hide_in_spans(key.tenant_id, sent_spans.spans)
                received, mapped = signal.map(sent_spans)
                quota().take(
                    (key.tenant_id, key.key_id), 2 * len(mapped.calls) + len(mapped.decisions)
                )
                recorded = record_spans(key.tenant_id, body, received, mapped, timezone.now())
                counted.lap("store")
    except QuotaExceededError as error:
        message = "This API key exceeded its rate limit."
        raise RefusedError(429, message, error.retry_after_s) from error
    except OverloadedError as error:
        raise RefusedError(503, "Too many requests at once.", RETRY_AFTER_S) from error
    except (OperationalError, InterfaceError) as error:
        raise RefusedError(503, why_unavailable(error), RETRY_AFTER_S) from error
    except (UnreadableBodyError, UnreadableTraceError) as error:
        raise RefusedError(400, str(error)) from error
    except LimitExceededError as error:
        raise RefusedError(413, error.message) from error
    counted.stored(len(sent), len(body), recorded.events)
    counted.spans(recorded.span_counts)
    return success(signal, recorded, media_type)
