"""Witnesses for tests: `tooltrail witness` as a process of its own, and requests to one."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tooltrail.ledger import VerifierKey, consistency_proof
from tooltrail.ledger.add_checkpoint import PATH, AddCheckpoint
from tooltrail.ledger.cosignature import WitnessKey

from sdk.tests.support.bundles import KEY, Log

NAME = "witness.example/w1"


@dataclass
class WitnessProcess:
    """A running witness: where it listens, and its key."""

    process: subprocess.Popen[str]
    url: str
    key: WitnessKey

    def post(self, body: bytes, path: str = PATH) -> tuple[int, str, str]:
        """The status, media type and text of the answer. Raises OSError if it was killed."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=60)
        try:
            connection.request("POST", path, body)
            answer = connection.getresponse()
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
        finally:
            connection.close()


@contextmanager
def running_witness(
    folder: Path, logs: Sequence[VerifierKey] = (KEY.verifier,), name: str = NAME
) -> Iterator[WitnessProcess]:
    """`tooltrail witness` on a port of this machine; it is killed at the end."""
    command = [sys.executable, "-m", "tooltrail", "witness", "--folder", str(folder)]
    command += ["--name", name, "--listen", "127.0.0.1:0"]
    for key in logs:
        command += ["--log", str(key)]
    with (folder.parent / f"{folder.name}.log").open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        printed = process.stdout.readline() + process.stdout.readline()
        found = re.fullmatch(r"Key +(\S+)\nListens +(\S+)\n", printed)
        assert found, printed
        yield WitnessProcess(process, found[2], WitnessKey.parse(found[1]))
    finally:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def asking(log: Log, old: int, size: int) -> bytes:
    """An honest request to sign the checkpoint of a size."""
    proof = [] if old in (0, size) else consistency_proof(old, size, log.subtree)
    return AddCheckpoint(old, tuple(proof), log.checkpoint(size)).to_bytes()


def brought(post: Callable[[bytes], tuple[int, str, str]], log: Log, size: int) -> str | None:
    """The signature line for a size, asked as a log does; None if the witness refuses."""
    old = 0
    while True:
        status, _, text = post(asking(log, old, size))
        if status == 200:
            return text
        if status != 409 or not text.strip().isdigit() or int(text) > size or int(text) == old:
            return None
        old = int(text)
