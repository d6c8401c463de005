"""Format of log records: lines that cannot control a terminal."""

import logging
from http import HTTPStatus

# The control characters C0 and C1, except tab and line feed. A terminal would execute them.
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


class LineFormatter(logging.Formatter):
    """Escapes control characters, and omits the traceback of a rejected request.

    A rejected request (403 and every other status below 500) is no error of the server. The line
    names the path and the status; the traceback adds nothing.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text."""
        status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        if record.exc_info and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            record = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        return super().format(record).translate(_CONTROLS)
