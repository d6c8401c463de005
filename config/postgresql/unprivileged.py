"""Runs PostgreSQL's programs for root, although they refuse to run as root.

An ordinary user runs them directly. For root there are two ways:

- On Linux: our own user namespace, in which uid 0 appears as an ordinary uid. The server's files
  stay root's, so nobody else gains access to anything.
- Where namespaces are not permitted (most containers, macOS): a system user, `tooltrail`,
  `postgres` or `_postgres`. `tooltrail` is created if none exists.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

SYSTEM_USERS = ("tooltrail", "postgres", "_postgres")


class CannotRunError(Exception):
    """PostgreSQL cannot run here. The message is one line for people."""


@dataclass(frozen=True)
class Runner:
    """Runs programs as `uid`: our own user (perhaps in a namespace) or a system user."""

    uid: int
    account: pwd.struct_passwd | None = None
    """The system user, if `uid` is one."""
    enter: Callable[[], None] | None = None
    """Enters the namespace. It runs in the child before the program."""

    def run(
        self, command: list[str], cwd: Path, env: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end. Raises OSError if it cannot be started."""
        return subprocess.run(  # noqa: S603  # PostgreSQL's own programs
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=self.enter,
            user=self.account.pw_uid if self.account else None,
            group=self.account.pw_gid if self.account else None,
            extra_groups=[] if self.account else None,
            # Ctrl-C goes to the whole terminal group, but a server must outlive its clients.
            start_new_session=True,
        )

    def own(self, path: Path) -> None:
        """Make the system user the owner of a file or folder."""
        if self.account is not None:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)


def runner_for(owner: int | None, must_reach: Iterable[Path]) -> Runner:
    """Return the runner for data that belongs to the uid `owner`, or for new data (None).

    Raises CannotRunError if the system user cannot reach one of the paths `must_reach`, and if
    PostgreSQL cannot run at all.
    """
    uid = os.geteuid()
    if uid != 0:
        return Runner(uid)
    enter = _namespace_entrance()
    if owner in (None, uid) and enter is not None:
        return Runner(uid, enter=enter)
    if owner == uid:
        raise CannotRunError(
            "the data belongs to root, and user namespaces are not allowed here;"
            " allow them, set DATABASE_URL, or change the owner of var/postgres"
        )
    account = _system_user() if owner is None else pwd.getpwuid(owner)
    for path in must_reach:
        _check_reach(account, path)
    return Runner(account.pw_uid, account=account)


def _namespace_entrance() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    # initdb looks up its user by name, so the user must exist.
    shown = next(user for user in pwd.getpwall() if user.pw_uid != 0)

    def enter() -> None:
        os.unshare(os.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{shown.pw_uid} 0 1")
        Path("/proc/self/gid_map").write_text(f"{shown.pw_gid} 0 1")

    try:
        subprocess.run(["true"], check=True, preexec_fn=enter)  # noqa: S607  # any `true` will do
    except (OSError, subprocess.SubprocessError):
        return None
    return enter


def _system_user() -> pwd.struct_passwd:
    for name in SYSTEM_USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    useradd = shutil.which("useradd")
    if useradd is None:
        raise CannotRunError(
            f"PostgreSQL does not run as root, and no user {' or '.join(SYSTEM_USERS)} exists;"
            " create one, run as an ordinary user, or set DATABASE_URL"
        )
    name = SYSTEM_USERS[0]
    completed = subprocess.run(  # noqa: S603  # only constants
        [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise CannotRunError(f"cannot create the user {name}: {completed.stderr.strip()}")
    return pwd.getpwnam(name)


def _check_reach(account: pwd.struct_passwd, path: Path) -> None:
    # Test each folder as that user, so that the message names the one that cannot be entered.
    for folder in (*reversed(path.parents), path):
        reached = subprocess.run(  # noqa: S603  # no shell reads the path
            ["test", "-x", str(folder)],  # noqa: S607  # root's own PATH
            check=False,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
        )
        if reached.returncode:
            raise CannotRunError(
                f"PostgreSQL runs as {account.pw_name}, which has no access to {folder};"
                " grant access, move the project, or set DATABASE_URL"
            )
