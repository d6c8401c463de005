"""`python -m tests.support.killed_receiver PORT FILE`: a receiver that can be killed at any moment.

It appends the records of each request to the file, and answers only when they are on the disk.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.siem_receivers import Certificate, serving


def main() -> None:
    """Serve until it is killed."""
    port, file = int(sys.argv[1]), Path(sys.argv[2])
    own = Certificate((file.parent / "c.pem").read_text(), (file.parent / "c.key").read_text())
    kept = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            os.write(kept, body)
            os.fsync(kept)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(Handler, port, own):
        sys.stdin.read()


if __name__ == "__main__":
    main()
