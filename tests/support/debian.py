"""Packages of this Debian, and a root of Debian 13 beside it. Needs root and a mirror."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path


def need(package: str, program: str) -> None:
    """Install a package of this Debian if its program is missing."""
    if Path(program).exists():
        return
    with (Path(tempfile.gettempdir()) / "tooltrail-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # apt refuses to run twice at once
        if Path(program).exists():
            return
        apt = ["apt-get", "-qq", "install", "--no-install-recommends", package]
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(apt, check=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def debian_13(*packages: str) -> Path:
    """A root of Debian 13 with these packages, from the mirror that this machine's apt uses.

    It is kept in the user's cache folder, because creating it takes most of a test's time.
    """
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tooltrail"
    root = kept / "-".join(("debian-13", *packages))
    if root.exists():
        return root
    need("mmdebstrap", "/usr/bin/mmdebstrap")
    kept.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=kept))
    draft.chmod(0o755)
    included = f"--include={','.join(packages)}"
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=apt", included),
            *("trixie", str(draft), f"deb {_mirror()} trixie main"),
        ],
        check=True,
    )
    try:
        draft.rename(root)  # only now, so that an incomplete root is never used
    except OSError:  # another process was faster
        shutil.rmtree(draft)
    return root


def _mirror() -> str:
    sources = [
        path.read_text()
        for pattern in ("*.sources", "*.list")
        for path in sorted(Path("/etc/apt/sources.list.d").glob(pattern))
    ]
    single = Path("/etc/apt/sources.list")
    sources += [single.read_text()] if single.exists() else []
    found = re.search(r"^(?:URIs:|deb)\s+(http\S*/debian/?)\s", "\n".join(sources), re.MULTILINE)
    assert found is not None, "apt has no Debian mirror configured"
    return found[1]
