"""How a record becomes text in the log: one that a terminal shows as it was meant."""

import logging
from http import HTTPStatus

# Control characters, C0 and C1, but for tab and line feed; a terminal obeys the others.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


class LineFormatter(logging.Formatter):
    """Escapes control characters, and leaves out the traceback of a refused request.

    A refusal (403 and every other answer below 500) is no fault of the server: the line names
    the path and the status, and the stack tells nothing more.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record's text."""
        status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        if record.exc_info and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            record = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        return super().format(record).translate(_CONTROLS)
