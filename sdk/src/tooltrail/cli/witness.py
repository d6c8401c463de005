"""`tooltrail witness`: signs the checkpoints of others' ledgers, each only if it fits the last one.

Owns the command line, its output and the HTTP server. `tooltrail.evidence.witness` does the checks.
"""

import argparse
import signal
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tooltrail.cli.verify import keys_in

if TYPE_CHECKING:
    from tooltrail.evidence.witness import Answer, Witness

FOLDER = "tooltrail-witness"
LISTEN = "127.0.0.1:8490"
AT_ONCE = 32
"""Connections that are served at the same time; others are closed at once."""
IDLE_S = 15.0
EXIT_CODES = "Exit codes: 0 it was stopped, 2 usage error, or the folder cannot be used."


def add_parser(verbs: Any) -> None:
    """Add `witness` to the command line."""
    parser = verbs.add_parser(
        "witness",
        help="sign the checkpoints of ledgers that only grow",
        description="Be a witness (https://c2sp.org/tlog-witness): sign a checkpoint of a ledger "
        "if it continues the last one that was signed, and refuse any other. The folder is the "
        "memory: keep it, and where the administrators of these ledgers cannot write. Needs the "
        "extra: pip install 'tooltrail[verify]'.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--folder", default=FOLDER, help=f"key and memory ({FOLDER})")
    parser.add_argument(
        "--name", required=True, help="the witness's name, such as witness.example/w1; stays"
    )
    parser.add_argument(
        "--log",
        action="append",
        required=True,
        metavar="KEY",
        help="the public key (name+id+key) of a ledger to sign for, or a file of keys",
    )
    parser.add_argument(
        "--listen",
        type=_address,
        default=_address(LISTEN),
        metavar="HOST:PORT",
        help=f"where to listen, without TLS: others reach it through a proxy ({LISTEN})",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C. Returns the exit code."""
    # Imported here, because it is slow and the other commands do not need it.
    from tooltrail.evidence.witness import Witness
    from tooltrail.ledger import LedgerError

    try:
        logs = [key for given in options.log for key in keys_in(given)]
        witness = Witness(Path(options.folder), options.name, logs)
        server = _Server(options.listen, witness)
    except (LedgerError, OSError, ImportError) as error:
        sys.stderr.write(f"tooltrail: {error}\n")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    host, port = server.server_address[:2]
    sys.stdout.write(f"Key      {witness.key}\nListens  http://{host!s}:{port}\n")
    sys.stdout.writelines(f"Signs    {name}\n" for name in sorted({key.name for key in logs}))
    sys.stdout.flush()
    with server:
        server.serve_forever()
    return 0


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, address: tuple[str, int], witness: "Witness") -> None:
        self.witness = witness
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = IDLE_S
    server_version, sys_version = "tooltrail-witness", ""

    def do_POST(self) -> None:
        answer = self._answer()
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _answer(self) -> "Answer":
        from tooltrail.evidence.witness import BODY_MAX, Answer
        from tooltrail.ledger.add_checkpoint import PATH

        if self.path != PATH:
            return Answer(HTTPStatus.NOT_FOUND, f"POST to {PATH}\n")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return Answer(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing\n")
        if len(length) > 9 or int(length) > BODY_MAX:
            return Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {BODY_MAX} bytes\n")
        body = self.rfile.read(int(length))
        try:
            return self.server.witness.answer(body)
        except OSError as error:
            sys.stderr.write(f"tooltrail: nothing is signed: {error}\n")
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the witness cannot sign now\n")

    def log_message(self, format: str, *args: Any) -> None:
        """One line for each request, with the answer's status."""
        sys.stderr.write(f"{self.log_date_time_string()}  {ascii(format % args)[1:-1]}\n")


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not host or not colon or not port.isdigit() or int(port) > 65_535:
        raise argparse.ArgumentTypeError("must be host:port")
    return host.strip("[]"), int(port)
