"""An auditor's folder of checkpoints: what is kept, and what raises an alarm."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tooltrail.cli.main import main
from tooltrail.evidence.watch import Watch
from tooltrail.ledger import Checkpoint, SigningKey, Tile

from sdk.tests.support.bundles import (
    KEY,
    ORIGIN,
    OTHER_KEY,
    Log,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
LOG = Log.of(700)


class Server:
    """A ledger as it is published, honest or not."""

    def __init__(self, log: Log = LOG, size: int = 300, *keys: SigningKey) -> None:
        self.log, self.size = log, size
        self.signers = list(keys) or [KEY]
        self.named = self.signers
        self.requests = 0

    def checkpoint(self) -> bytes:
        """The newest."""
        return self.log.checkpoint(self.size, *self.signers)

    def tile(self, tile: Tile) -> bytes:
        """A tile, computed."""
        self.requests += 1
        first, height = tile.index * 256, tile.level * 8
        return b"".join(self.log.subtree(height, first + at) for at in range(tile.width))

    def public_keys(self) -> list[str]:
        """What it says its keys are."""
        return [str(key.verifier) for key in self.named]


def kept(folder: Path) -> list[str]:
    """The files in the folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_growing_ledger_is_followed(tmp_path: Path) -> None:
    watch, server = Watch(tmp_path), Server(size=0)
    outcomes = []
    for size in (0, 1, 1, 255, 256, 257, 512, 513, 700, 700):
        server.size = size
        outcomes.append(watch.observe(server, NOW).outcome)
    assert outcomes == ["first", "grown", "unchanged", *["grown"] * 6, "unchanged"]
    assert kept(tmp_path) == [
        *(f"checkpoints/{size:012d}.txt" for size in (0, 1, 255, 256, 257, 512, 513, 700)),
        "keys.txt",
        "origin.txt",
    ]
    assert (tmp_path / "checkpoints/000000000700.txt").read_bytes() == LOG.checkpoint(700)


def test_shrunken_ledger_raises_an_alarm_and_its_checkpoint_is_kept(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    watch.observe(Server(size=300), NOW)
    for _ in range(2):  # and it is not forgotten
        observation = watch.observe(Server(size=299), NOW)
        assert observation.outcome == "altered"
        assert "SHRANK: it had 300 entries and now has 299" in observation.message
        assert observation.file is not None
        assert observation.file.read_bytes() == LOG.checkpoint(299)
        assert "SHRANK" in observation.file.with_name("20261122T000000Z-why.txt").read_text()
    assert watch.observe(Server(size=301), NOW).outcome == "grown"


@pytest.mark.parametrize("size", [300, 301, 512, 700])
def test_forked_ledger_raises_an_alarm(size: int, tmp_path: Path) -> None:
    watch, other = Watch(tmp_path), Log.of(700)
    other.lines[123] = other.lines[124]
    watch.observe(Server(size=300), NOW)
    observation = watch.observe(Server(other, size), NOW)
    assert observation.outcome == "altered"
    assert "FORKED" in observation.message


def test_tiles_without_a_consistency_proof_raise_an_alarm(tmp_path: Path) -> None:
    watch, server = Watch(tmp_path), Server(size=300)
    watch.observe(server, NOW)
    other = Log.of(700)
    other.lines[123] = other.lines[124]
    server.size = 600
    server.tile = Server(other).tile  # type: ignore[method-assign]  # a server that says otherwise
    observation = watch.observe(server, NOW)
    assert observation.outcome == "altered"
    assert "cannot prove that it only grew" in observation.message


def test_new_key_is_accepted_only_with_a_signature_of_a_trusted_key(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.observe(Server(LOG, 10, KEY), NOW).outcome == "first"
    assert watch.observe(Server(LOG, 20, OTHER_KEY), NOW).outcome == "altered"
    assert watch.observe(Server(LOG, 20, KEY, OTHER_KEY), NOW).outcome == "grown"
    assert (tmp_path / "keys.txt").read_text().split() == [
        str(KEY.verifier),
        str(OTHER_KEY.verifier),
    ]
    assert watch.observe(Server(LOG, 30, OTHER_KEY), NOW).outcome == "grown"


def test_server_key_is_ignored_when_a_key_is_configured(tmp_path: Path) -> None:
    watch, server = Watch(tmp_path, [KEY.verifier]), Server(LOG, 10, OTHER_KEY)
    assert watch.observe(server, NOW).outcome == "altered"
    assert watch.observe(Server(LOG, 10, KEY, OTHER_KEY), NOW).outcome == "first"
    assert watch.observe(Server(LOG, 20, OTHER_KEY), NOW).outcome == "altered"


class LaterEpoch(Server):
    """The ledger, restarted after a restore: another log under another name."""

    def __init__(self, log: Log, size: int, key: SigningKey = KEY) -> None:
        super().__init__(log, size, SigningKey(f"{ORIGIN}/1", key.private))

    def checkpoint(self) -> bytes:
        (key,) = self.signers
        return Checkpoint(key.name, self.size, self.log.root(self.size)).sign([key])


def restored(size: int) -> Log:
    """A log that has the first `size` entries, and then others."""
    log = Log.of(size)
    for number in range(700 - size):
        log.add(b"after the restore %d" % number)
    return log


def test_later_epoch_is_reported_once_and_followed(tmp_path: Path) -> None:
    for size in (100, 200, 300):
        Watch(tmp_path).observe(Server(size=size), NOW)
    observation = Watch(tmp_path).observe(LaterEpoch(restored(250), 400), NOW)
    assert observation.outcome == "restarted"
    assert observation.message.endswith(
        "ENTRIES ARE GONE OR CHANGED: of 300 entries the first 200 are proved to be there unchanged"
    )
    outcomes = [
        Watch(tmp_path).observe(LaterEpoch(restored(250), size), NOW).outcome for size in (400, 500)
    ]
    assert outcomes == ["unchanged", "grown"]
    assert [name for name in kept(tmp_path) if name.startswith("epochs/")] == [
        "epochs/1/checkpoints/000000000400.txt",
        "epochs/1/checkpoints/000000000500.txt",
        "epochs/1/keys.txt",
        "epochs/1/origin.txt",
    ]


def test_later_epoch_that_lost_nothing_says_so(tmp_path: Path) -> None:
    Watch(tmp_path).observe(Server(size=300), NOW)
    observation = Watch(tmp_path).observe(LaterEpoch(LOG, 700), NOW)
    assert observation.message.endswith("all 300 entries are there unchanged")


def test_later_epoch_of_a_rewritten_ledger_is_an_alteration(tmp_path: Path) -> None:
    Watch(tmp_path).observe(Server(size=300), NOW)
    observation = Watch(tmp_path).observe(LaterEpoch(restored(10), 400), NOW)
    assert observation.outcome == "altered"
    assert "continue none of the stored checkpoints" in observation.message


def test_later_epoch_needs_a_trusted_key(tmp_path: Path) -> None:
    Watch(tmp_path).observe(Server(size=300), NOW)
    observation = Watch(tmp_path).observe(LaterEpoch(LOG, 400, OTHER_KEY), NOW)
    assert observation.outcome == "altered"
    assert "no known key signed" in observation.message


@pytest.fixture
def published() -> Iterator[tuple[Server, str]]:
    """A ledger, and where it is served."""
    ledger = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/api/v1/ledger/")
            status = 200
            if self.headers["Authorization"] != "Bearer tt_key":
                status, body = 401, b'{"detail": "Nobody knows this key."}'
            elif path == "checkpoint":
                body = ledger.checkpoint()
            elif path == "keys":
                body = b'{"keys": [], "next": "a page"}'
            elif path == "keys?cursor=a%20page":
                named = [{"vkey": key} for key in ledger.public_keys()]
                body = json.dumps({"keys": named}).encode()
            else:
                body = ledger.tile(Tile.from_path(path))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield ledger, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_watch_command_follows_a_ledger_and_reports_alterations(
    published: tuple[Server, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ledger, url = published
    folder = tmp_path / "watched"
    words = ["watch", url, "--folder", str(folder), "--once"]
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_key")
    assert main(words) == 0
    assert "first checkpoint stored, with 300 entries" in capsys.readouterr().out
    ledger.size = 700
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outcome"] == "grown"
    assert document["size"] == 700
    assert document["root"] == LOG.root(700).hex()
    assert Path(document["file"]).read_bytes() == LOG.checkpoint(700)
    assert ledger.requests > 0
    ledger.size = 600
    assert main([*words[:-1], "--every", "1"]) == 1
    out = capsys.readouterr().out
    assert "ALTERED  THE LEDGER SHRANK" in out
    assert "Kept as evidence: " in out


@pytest.mark.slow
def test_watch_command_reports_an_unreachable_server(
    published: tuple[Server, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, url = published
    words = ["watch", url, "--folder", str(tmp_path), "--once"]
    monkeypatch.delenv("TOOLTRAIL_API_KEY", raising=False)
    assert main(words) == 2
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_other")
    assert main(words) == 3
    assert "Nobody knows this key." in capsys.readouterr().err
    assert main(["watch", "http://127.0.0.1:9", *words[2:], "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["outcome"] == "no answer"
    assert main([*words, "--key", "nonsense"]) == 2
    assert kept(tmp_path) == []
