"""The folders of a spool: one root for each server and key, in it one home for each process.

    <spool dir>/<hash of url and key id>/        the root, mode 0700
        origin.json                              url and key id, for people to read
        acknowledged.json                        what the server acknowledged last, and where in its
                                                 ledger (`tooltrail verify --acknowledged`)
        <producer id>/                           the home of a process; `+…` for a second home
            owner                                which process (`tooltrail.spool.owner`)
            lock                                 held (flock) while the process lives; contains
                                                 the losses if it is killed now, in fixed size.
                                                 SDKs without flock have `note` instead
            <first number>.open                  the segment being written
            <batch id>.<first>.<count>.batch     sealed; `.slim` once payloads were removed
            <producer id>.taken/                 a dead process's home that this process took over
        rejected/                                batches the server will never accept, and why

If the lock of a home can be taken, its process is dead. Without a lock, `owner` decides. Whoever
takes a home over renames it into its own home, so only one can. Homes are only searched in the own
root, so events of one key are never sent with another. docs/spool.md describes all this for other
SDKs.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from tooltrail.settings import default_spool_dir
from tooltrail.spool.lines import salvage, seal_line
from tooltrail.spool.losses import Loss, declared_in
from tooltrail.spool.owner import OWNER, has_ended, read_owner, runs, this_process, write_owner

# Not on Windows. Not imported on demand: a fork during an import would deadlock the child.
try:
    import fcntl
except ImportError:
    HAS_FILE_LOCKS = False
else:
    HAS_FILE_LOCKS = True

LOCK = "lock"
NOTE = "note"  # in homes of SDKs without file locks
TAKEN = ".taken"
NOTE_BYTES = 4096  # allocated with the home: a full disk still allows overwriting them
REJECTED = "rejected"
ORIGIN = "origin.json"


def key_id(api_key: str) -> str:
    """The public part of a key that names it: `tt_<tenant>_<key id>_<secret>_<crc>`.

    A key of any other form is named by its hash.
    """
    parts = api_key.split("_")
    if len(parts) == 5 and parts[0] == "tt":
        return parts[2]
    return "sha256-" + sha256(api_key.encode()).hexdigest()[:16]


def root_path(spool_dir: Path | None, url: str, api_key: str) -> Path:
    """The folder where events for this server and key wait."""
    name = sha256(f"{url.rstrip('/')}\n{key_id(api_key)}".encode()).hexdigest()[:16]
    return (spool_dir or default_spool_dir()) / name


def make_root(spool_dir: Path | None, url: str, api_key: str) -> Path:
    """Make the root if needed. Raises OSError if that fails or it belongs to another user."""
    root = root_path(spool_dir, url, api_key)
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.geteuid():
        raise PermissionError(f"{root} belongs to another user")
    origin = root / ORIGIN
    if not origin.exists():
        text = json.dumps({"url": url.rstrip("/"), "key_id": key_id(api_key)})
        draft = root / f".{ORIGIN}.{secrets.token_hex(8)}"
        draft.write_text(text)
        draft.replace(origin)
    return root


def read_origin(root: Path) -> dict[str, str]:
    """Read `url` and `key_id` of a root; empty texts if they are lost."""
    try:
        origin = json.loads((root / ORIGIN).read_text())
        return {"url": str(origin["url"]), "key_id": str(origin["key_id"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"url": "", "key_id": ""}


def make_home(root: Path, producer_id: str) -> int:
    """Make a home and return the descriptor of its lock, held. Raises OSError.

    It is locked before it gets its name, so that nobody can take it for a dead process's home.
    """
    draft = _draft(root / producer_id)
    draft.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(draft / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # no room: SDKs without file locks do not take this home over
            write_owner(draft)
        with suppress(OSError):  # no room: batches taken over can be sent from here anyway
            write_note(lock, [])
        draft.rename(root / producer_id)
    except OSError:
        os.close(lock)
        raise
    return lock


def is_begun(home: Path) -> bool:
    """Whether this home exists, or was begun."""
    return home.exists() or _draft(home).exists()


def write_note(lock: int, losses: list[Loss]) -> None:
    """Write the losses if the holder of this lock is killed now. Raises OSError.

    The bytes are overwritten in place, so that a full disk accepts them. Losses that do not fit
    are left out, the last ones first.
    """
    text = b""
    for line in (seal_line(loss.event()) for loss in losses):
        if len(text) + len(line) <= NOTE_BYTES:
            text += line
    os.pwrite(lock, text.ljust(NOTE_BYTES, b"\n"), 0)


def read_note(home: Path) -> list[Loss]:
    """Read the last note of a home: the losses if its process has been killed."""
    with suppress(OSError):
        return declared_in(salvage(note_path(home).read_bytes(), 0).lines)
    return []


def note_path(home: Path) -> Path:
    """The file with the note of a home: its lock, if it has one."""
    return home / LOCK if (home / LOCK).exists() else home / NOTE


def _draft(home: Path) -> Path:
    return home.with_name(f".{home.name}")


def homes(root: Path) -> list[Path]:
    """The homes of all processes in this root."""
    with suppress(OSError):
        return [
            path
            for path in root.iterdir()
            if path.name != REJECTED and not path.name.startswith(".") and path.is_dir()
        ]
    return []


@contextmanager
def claimed(home: Path) -> Iterator[bool]:
    """Lock a dead process's home; False if its process lives or another process has locked it.

    A home without a lock, of another SDK, is not locked: `take` decides who gets it.
    """
    try:
        lock = os.open(home / LOCK, os.O_RDWR)
    except OSError:
        owner = read_owner(home)
        if owner is None:
            with suppress(OSError):  # of a process that was killed while it removed this home
                home.rmdir()
        yield owner is not None and has_ended(owner, this_process(), runs)
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = os.fstat(lock).st_nlink > 0  # else its former holder has removed it
        except OSError:
            free = False
        yield free
    finally:
        os.close(lock)


def take(home: Path, own: Path) -> Path:
    """Move a dead process's home into the own one and return where it is.

    If this process dies, too, both are taken over together. Raises OSError if another process
    was quicker.
    """
    taken = own / f"{home.name}{TAKEN}"
    home.rename(taken)
    return taken


def taken_homes(home: Path) -> list[Path]:
    """The homes that the process of this home had taken over and not emptied."""
    return [path for path in home.glob(f"*{TAKEN}") if path.is_dir()]


def remove_home(home: Path) -> None:
    """Remove a home if it has no events."""
    if any(path.name not in (LOCK, NOTE, OWNER) for path in home.iterdir()):
        return
    for name in (NOTE, LOCK, OWNER):
        (home / name).unlink(missing_ok=True)
    home.rmdir()


def prune(folder: Path, max_bytes: int) -> None:
    """Delete the first files of a folder, in order of name, until it holds `max_bytes` at most."""
    with suppress(OSError):
        files = sorted(path for path in folder.iterdir() if path.is_file())
        size = sum(path.stat().st_size for path in files)
        for path in files:
            if size <= max_bytes:
                return
            size -= path.stat().st_size
            path.unlink()
