"""One attempt to deliver a message: whatever happens becomes an answer."""

import http.client
import smtplib
from collections.abc import Callable, Mapping
from dataclasses import replace

from audit.deliveries.sender import chats, guard, mail, slack, webhook
from audit.deliveries.sender.job import ANSWER_MAX, Answer, Job
from config.http import connection_failures

_SENDERS: Mapping[str, Callable[[Job], Answer]] = {
    "email": mail.send,
    "webhook": webhook.send,
    "slack": slack.send,
    "service": chats.send,
    "service check": chats.check,
}


def attempt(job: Job) -> Answer:
    """Try once. Raises nothing: a failure is an answer that says why."""
    before = guard.refused_count()
    try:
        answer = _SENDERS[job.kind](job)
    except Exception as error:
        answer = Answer(job.id, is_delivered=False, text=_reason(error), status=_status(error))
    text = " ".join(answer.text.split())[:ANSWER_MAX]
    if not answer.is_delivered and guard.refused_count() > before:
        text = "The operator does not allow deliveries to this address."
        return replace(answer, text=text, is_refused=True)
    return replace(answer, text=text)


def _status(error: Exception) -> int | None:
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None


def _reason(error: Exception) -> str:
    match error:
        case smtplib.SMTPResponseException():
            text = error.smtp_error
            return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        case smtplib.SMTPRecipientsRefused():
            return f"All recipients were refused: {', '.join(error.recipients)}"
        case http.client.HTTPException() | smtplib.SMTPServerDisconnected():
            return f"The connection broke: {type(error).__name__}."
    if words := connection_failures.words_of(error):
        return words
    if isinstance(error, ValueError | OSError):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}."
