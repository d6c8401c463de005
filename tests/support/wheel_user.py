"""What a user does with the installed wheels: run by their Python, with nothing else on its path.

    python -I wheel_user.py SERVER FOLDER

SERVER is the command `tooltrail-server`. Starts the demo, signs in, sends a call with the SDK,
makes a backup, and restores it. Prints one line of JSON: what it found. Writes into FOLDER only.
"""

import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tooltrail

SERVER, FOLDER = sys.argv[1], Path(sys.argv[2])
TOOL = "from_the_wheel"


def environment(var: str) -> dict[str, str]:
    return {**os.environ, "TOOLTRAIL_VAR": str(FOLDER / var)}


@contextmanager
def running(var: str) -> Iterator[dict[str, str]]:
    """The demo on a free port, with its data in FOLDER/var: what `up` says of it."""
    process = subprocess.Popen(
        [SERVER, "up", "--demo", "--json", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env=environment(var),
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=60)


def manage(var: str, *arguments: str) -> str:
    """What a command prints."""
    return subprocess.check_output([SERVER, *arguments], text=True, cwd="/", env=environment(var))


def shown(facts: dict[str, str]) -> tuple[bool, int]:
    """Sign in. Whether the list of calls shows our call, and the size of its style sheet."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser, url = urllib.request.build_opener(cookies), facts["url"]
    form = browser.open(f"{url}/login").read().decode()
    token, *_ = re.findall(r'name="csrfmiddlewaretoken"\s+value="(\w+)"', form)
    fields = {"username": facts["user"], "password": facts["password"]}
    data = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": token}).encode()
    browser.open(f"{url}/login", data)
    page = browser.open(f"{url}/calls/?q=tool:{TOOL}").read().decode()
    style = re.findall(r'href="([^"]+\.css)"', page)[0]
    return f'title="{TOOL}"' in page or f">{TOOL}<" in page, len(browser.open(url + style).read())


def main() -> dict[str, Any]:
    """Go through it all."""
    with running("var") as facts:
        spool = FOLDER / "spool"
        trail = tooltrail.Trail(facts["url"], facts["api_key"], spool_dir=spool)
        trail.tool(name=TOOL)(len)("wheel")
        assert trail.flush(30), trail.stats()
        is_shown, style_bytes = shown(facts)
        manage("var", "backup", str(FOLDER / "dump"))
    manage("restored", "restore", str(FOLDER / "dump"))
    with running("restored") as facts:
        is_restored, _ = shown(facts)
    return {
        "version": manage("var", "--version").split()[1],
        "user": os.geteuid(),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "sdk": tooltrail.__file__,
        "spooled": len(list(spool.iterdir())),
        "shown": is_shown,
        "style_bytes": style_bytes,
        "restored": is_restored,
    }


sys.stdout.write(json.dumps(main()) + "\n")
