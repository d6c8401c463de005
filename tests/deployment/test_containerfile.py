"""The image's steps and what its processes do without privilege, on a read-only root."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest

from config.postgresql.embedded import EmbeddedPostgres
from tests.support import containers
from tests.support.clusters import running_cluster
from tests.support.containers import Image
from tests.support.installation import until
from tests.support.management_commands import init_database, row_count

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sampled("container", 0),  # 2 min: in .ci/full
    pytest.mark.skipif(os.getuid() != 0, reason="it makes a root of Debian 13"),
]
INSIDE = "/tmp/postgresql"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Away from pytest's own folder, which only its user may enter."""
    path = Path(tempfile.mkdtemp(prefix="tt-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def image(folder: Path) -> Image:
    return containers.build(folder / "root")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    with running_cluster(folder / "postgres", "unix_socket_permissions = 0777") as running:
        yield running


def socket_of(server: EmbeddedPostgres) -> Path:
    path = Path(parse_qs(urlsplit(server.admin_url).query)["host"][0])
    path.chmod(0o711)  # the container's user connects, with a password
    return path


def test_image_serves_and_works_without_privilege(
    image: Image, server: EmbeddedPostgres, folder: Path
) -> None:
    sockets = socket_of(server)
    addresses = init_database(server.admin_url, folder / "init")
    uid, gid = map(int, image.user.split(":"))
    assert uid >= 1000
    assert gid >= 1000

    def mounts(name: str) -> dict[Path, str]:
        var = folder / name
        var.mkdir()
        os.chown(var, uid, gid)
        return {var: image.environment["TOOLTRAIL_VAR"], sockets: INSIDE}

    urls = {
        name: url.replace(quote(str(sockets), safe=""), quote(INSIDE, safe=""))
        for name, url in addresses.items()
    }
    assert urls != addresses
    image.environment.update(urls, TOOLTRAIL_SECRET_KEY="k" * 50)
    for arguments in (["migrate", "--database", "owner", "-v0"], ["partitions", "apply"]):
        job = image.run([*image.entrypoint, *arguments], mounts(arguments[0]))
        subprocess.run(job, check=True, timeout=300)

    # The web server has the address of its own role only, as a pod of the chart.
    web = {name: url for name, url in image.environment.items() if name not in urls}
    web["DATABASE_URL"] = urls["DATABASE_URL"]
    serving = containers.in_background_until_healthy(image, [*image.command, "--without-worker"])
    with subprocess.Popen(
        Image(**vars(image) | {"environment": web}).run(serving, mounts("web")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output, _ = process.communicate("end\n", timeout=120)
    lines = output.splitlines()
    assert f"healthy {uid}" in lines, output
    assert "the root can be written" not in lines
    assert lines[-1] in ("exit code 0", "exit code 143"), output

    worker = [*image.entrypoint, "procrastinate", "worker", "--concurrency", "1"]
    with psycopg.connect(addresses["DATABASE_OWNER_URL"], autocommit=True) as owner:
        assert row_count(owner, "procrastinate_workers") == 0
        working = subprocess.Popen(image.run(worker, mounts("worker")))
        until(lambda: row_count(owner, "procrastinate_workers"))
        working.terminate()
        working.wait(60)
