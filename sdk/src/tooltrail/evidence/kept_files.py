"""Files that an auditor keeps: whole or not there, whatever happens while they are written."""

import os
from pathlib import Path


def write_whole(file: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file completely or not at all, even in a power cut. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.draft")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
