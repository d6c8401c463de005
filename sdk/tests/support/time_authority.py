"""A time authority of tests: `openssl ts` with certificates of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

_CONFIG = """
[req]
distinguished_name = name
prompt = no
[name]
CN = Time of tests
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = authority
[authority]
serial = {folder}/serial
crypto_device = builtin
signer_cert = {folder}/leaf.pem
signer_key = {folder}/leaf.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


class TimeAuthority:
    """An authority in a folder. `ca` is the file of its root certificate."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder, self._turn = folder, Lock()
        self.ca = folder / "root.pem"
        self._config = folder / "openssl.cnf"
        self._config.write_text(_CONFIG.format(folder=folder))
        (folder / "serial").write_text("01\n")
        key = ("-newkey", "rsa:2048", "-nodes")
        common = ("-x509", "-days", "30", "-config", str(self._config))
        self._run(
            *("req", *common, *key, "-extensions", "root", "-subj", "/CN=Root of tests"),
            *("-keyout", "root.key", "-out", "root.pem"),
        )
        self._run(
            *("req", *common, *key, "-extensions", "leaf", "-subj", "/CN=Time of tests"),
            *("-CA", "root.pem", "-CAkey", "root.key", "-keyout", "leaf.key", "-out", "leaf.pem"),
        )

    def reply(self, query: bytes) -> bytes:
        """The answer to a request."""
        with self._turn:
            (self._folder / "query.tsq").write_bytes(query)
            config = ("-config", str(self._config), "-section", "authority")
            self._run("ts", "-reply", *config, "-queryfile", "query.tsq", "-out", "reply.tsr")
            return (self._folder / "reply.tsr").read_bytes()

    def accepts(self, token: bytes, text: bytes) -> bool:
        """Whether OpenSSL accepts a token over a text."""
        (self._folder / "token.der").write_bytes(token)
        (self._folder / "text").write_bytes(text)
        done = subprocess.run(
            [
                *("openssl", "ts", "-verify", "-token_in", "-in", "token.der", "-data", "text"),
                *("-CAfile", "root.pem"),
            ],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0 and "Verification: OK" in done.stdout + done.stderr

    def _run(self, *arguments: str) -> None:
        done = subprocess.run(
            ["openssl", *arguments], cwd=self._folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def serving(authority: TimeAuthority) -> Iterator[str]:
    """The authority over HTTP, on a port of this machine; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = authority.reply(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tsr"
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
