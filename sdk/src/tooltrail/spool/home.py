"""The folders of a spool: one root for each server and key, in it one home for each process.

    <spool dir>/<hash of url and key id>/        the root, mode 0700
        origin.json                              url and key id, so that people can tell
        <producer id>/                           one process's home; `+…` if it needs another
            lock                                 held (flock) for as long as it lives; in it
                                                 the losses if it is killed now, of fixed size
            <first number>.open                  the segment being written
            <batch id>.<first>.<count>.batch     sealed; `.slim` once payloads were given up
        rejected/                                what the server will never take, and why

A home whose lock can be taken belongs to a dead process. Homes are only ever looked for in
the own root, so one key's events are never sent with another's.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from tooltrail.settings import default_spool_dir
from tooltrail.spool.lines import salvage, seal_line
from tooltrail.spool.losses import Loss, declared_in

# Not on Windows. Nor imported when needed: a fork in the middle of an import locks the child up.
try:
    import fcntl
except ImportError:
    HAS_FILE_LOCKS = False
else:
    HAS_FILE_LOCKS = True

LOCK = "lock"
NOTE_BYTES = 4096  # taken when the home is made: a full disk lets them be written over
REJECTED = "rejected"
ORIGIN = "origin.json"


def key_id(api_key: str) -> str:
    """The part of a key that names it and is no secret: `tt_<tenant>_<key id>_<secret>_<crc>`.

    A key of any other form is named by its hash.
    """
    parts = api_key.split("_")
    if len(parts) == 5 and parts[0] == "tt":
        return parts[2]
    return "sha256-" + sha256(api_key.encode()).hexdigest()[:16]


def root_path(spool_dir: Path | None, url: str, api_key: str) -> Path:
    """Where the events for this server and key wait."""
    name = sha256(f"{url.rstrip('/')}\n{key_id(api_key)}".encode()).hexdigest()[:16]
    return (spool_dir or default_spool_dir()) / name


def make_root(spool_dir: Path | None, url: str, api_key: str) -> Path:
    """Make the root, or find it. Raises OSError when it cannot be made or is another user's."""
    root = root_path(spool_dir, url, api_key)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.geteuid():
        raise PermissionError(f"{root} belongs to another user")
    origin = root / ORIGIN
    if not origin.exists():
        text = json.dumps({"url": url.rstrip("/"), "key_id": key_id(api_key)})
        draft = root / f".{ORIGIN}.{os.getpid()}"
        draft.write_text(text)
        draft.replace(origin)
    return root


def read_origin(root: Path) -> dict[str, str]:
    """Whose events wait in a root: `url` and `key_id`; empty texts where that is lost."""
    try:
        origin = json.loads((root / ORIGIN).read_text())
        return {"url": str(origin["url"]), "key_id": str(origin["key_id"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"url": "", "key_id": ""}


def make_home(root: Path, producer_id: str) -> int:
    """Make a home and return the descriptor of its lock, held. Raises OSError.

    It is locked before it gets its name, so that nobody can take it for a dead one's.
    """
    draft = _draft(root / producer_id)
    draft.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(draft / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # no room: what others left can be sent from here all the same
            write_note(lock, [])
        draft.rename(root / producer_id)
    except OSError:
        os.close(lock)
        raise
    return lock


def is_begun(home: Path) -> bool:
    """Whether somebody has begun to make this home."""
    return home.exists() or _draft(home).exists()


def write_note(lock: int, losses: list[Loss]) -> None:
    """Write what is lost if the holder of this lock is killed now. Raises OSError.

    The bytes are written over in place, so that a full disk takes them. Losses beyond the
    room of the note are left out, the last ones first.
    """
    text = b""
    for line in (seal_line(loss.event()) for loss in losses):
        if len(text) + len(line) <= NOTE_BYTES:
            text += line
    os.pwrite(lock, text.ljust(NOTE_BYTES, b"\n"), 0)


def read_note(home: Path) -> list[Loss]:
    """What the process of this home had in memory alone when it last said so."""
    with suppress(OSError):
        return declared_in(salvage((home / LOCK).read_bytes(), 0).lines)
    return []


def _draft(home: Path) -> Path:
    return home.with_name(f".{home.name}")


def homes(root: Path) -> list[Path]:
    """Every process's home in this root."""
    with suppress(OSError):
        return [
            path
            for path in root.iterdir()
            if path.name != REJECTED and not path.name.startswith(".") and path.is_dir()
        ]
    return []


@contextmanager
def claimed(home: Path) -> Iterator[bool]:
    """Hold a dead process's home; False if its process lives or another holds it."""
    try:
        lock = os.open(home / LOCK, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = os.fstat(lock).st_nlink > 0  # else its former holder has cleared it away
        except OSError:
            free = False
        yield free
    finally:
        os.close(lock)


def remove_home(home: Path) -> None:
    """Clear an empty home away; one that still holds something stays."""
    if any(path.name != LOCK for path in home.iterdir()):
        return
    (home / LOCK).unlink(missing_ok=True)
    home.rmdir()


def prune(folder: Path, max_bytes: int) -> None:
    """Delete the oldest files of a folder, by their names, until it holds `max_bytes` at most."""
    with suppress(OSError):
        files = sorted(path for path in folder.iterdir() if path.is_file())
        size = sum(path.stat().st_size for path in files)
        for path in files:
            if size <= max_bytes:
                return
            size -= path.stat().st_size
            path.unlink()
