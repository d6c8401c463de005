"""Private files, such as keys: only its user can read them; writes are atomic and durable."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings


class PrivateFileError(Exception):
    """A file cannot be read or written, or other users may read it; the message is one line."""


def folder() -> Path:
    """The folder of these files (`TOOLTRAIL_LEDGER_DIR`)."""
    path: Path = settings.LEDGER_DIR
    return path


def read(path: Path) -> bytes | None:
    """A file's content; None without a file. Raises PrivateFileError, also if others may read.

    A file of root may be read by its group: a secret that Kubernetes mounts belongs to root and the
    pod's group.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            of_root = status.st_uid == 0 and os.geteuid() != 0
            if status.st_mode & (0o037 if of_root else 0o077):
                raise PrivateFileError(f"{path} can be read by others: chmod 600 it")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {path}") from error


def write(path: Path, data: bytes) -> None:
    """Replace a file. It survives a power cut once this returns. Raises PrivateFileError."""
    draft = path.with_name(f"{path.name}.new")
    try:
        _write_draft(draft, data)
        draft.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {error.filename or path}") from error


def create(path: Path, data: bytes) -> None:
    """Write a file, unless there is one: of several processes the first wins.

    Raises PrivateFileError.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        _write_draft(draft, data)
        with suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
        _sync(path.parent)
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {error.filename or path}") from error


def _write_draft(draft: Path, data: bytes) -> None:
    _make_folder(draft.parent)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def locked() -> Iterator[None]:
    """Hold this machine's lock for signing until the block ends. Raises PrivateFileError."""
    try:
        _make_folder(folder())
        descriptor = os.open(folder() / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise PrivateFileError(f"{error.strerror}: {error.filename}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make_folder(path: Path) -> None:
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
