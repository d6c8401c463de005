"""Runs a command and keeps a copy of what goes in and out: python tee.py FOLDER COMMAND …"""

import os
import subprocess
import sys
import threading
from pathlib import Path


def copy(source: int, target: int, file: Path) -> None:
    with file.open("wb", buffering=0) as kept:
        while chunk := os.read(source, 65536):
            kept.write(chunk)
            os.write(target, chunk)
    os.close(target)


folder = Path(sys.argv[1])
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
assert server.stdin
assert server.stdout
up = (0, server.stdin.fileno(), folder / "in")
threading.Thread(target=copy, args=up, daemon=True).start()
copy(server.stdout.fileno(), 1, folder / "out")
server.wait()
