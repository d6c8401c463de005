"""Formats of log records: lines that cannot control a terminal, and JSON for log collectors."""

import logging
import time
from http import HTTPStatus

from pythonjsonlogger.json import JsonFormatter

from config.process.json_lines import TIME_FORMAT

# The control characters C0 and C1, except tab and line feed. A terminal would execute them.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


class LineFormatter(logging.Formatter):
    """Escapes control characters, and ends the line with the request's id."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text."""
        return super().format(_without_refusal(record)).translate(_CONTROLS)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        """Return the line without a traceback."""
        request_id = getattr(record, "request_id", None)
        return super().formatMessage(record) + (f" [{request_id}]" if request_id else "")


class JsonLineFormatter(JsonFormatter):
    """One JSON object a line, with the members that the record was logged with."""

    converter = time.gmtime  # type: ignore[assignment]  # it takes None, too

    def __init__(self) -> None:
        super().__init__(
            "{asctime}{levelname}{name}{message}{request_id}",
            style="{",
            datefmt=TIME_FORMAT,
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            # Not JSON: Django gives the request itself, and procrastinate its action.
            reserved_attrs=[
                *logging.makeLogRecord({}).__dict__,
                "request",
                "server_time",
                "taskName",
            ],
        )

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        return super().format(_without_refusal(record))


def _without_refusal(record: logging.LogRecord) -> logging.LogRecord:
    """The record without the traceback of a rejected request.

    A rejected request (403 and every other status below 500) is no error of the server. The line
    names the path and the status; the traceback adds nothing.
    """
    status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
    if not record.exc_info or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return record
    return logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
