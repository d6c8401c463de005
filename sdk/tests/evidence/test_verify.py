"""Verification of evidence bundles: a valid one passes, each kind of alteration is detected."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tooltrail.cli.main import main
from tooltrail.evidence import Archive, EntryLine, UnreadableError, Verdict, verify
from tooltrail.ledger import Checkpoint, FormatError, Kind, VerifierKey
from tooltrail.ledger.frontier import Frontier, subtrees_before, subtrees_behind

from sdk.tests.support.bundles import (
    KEY,
    ORIGIN,
    OTHER_KEY,
    VERSION,
    Bundle,
    Log,
    at,
)

LOG = Log.of(300)
HONEST = Bundle.of(LOG, 40, 200, sizes=[20, 100, 250, 300], previous=[30])
TRUSTED = (KEY.verifier,)


def judged(
    bundle: Bundle,
    folder: Path,
    *,
    trusted: tuple[VerifierKey, ...] = TRUSTED,
    previous: tuple[bytes, ...] = (),
) -> Verdict:
    """The verdict on a bundle."""
    with Archive(bundle.write(folder / "evidence.zip")) as archive:
        return verify(archive, trusted=trusted, previous=previous)


def failed(verdict: Verdict) -> dict[str, str]:
    """The checks that failed, and the first thing that was wrong."""
    return {check.name: check.problems[0] for check in verdict.checks if check.problem_count}


def results(verdict: Verdict) -> dict[str, str]:
    """How every check ended."""
    return {check.name: check.result for check in verdict.checks}


def line_at(bundle: Bundle, index: int) -> int:
    """Where in `entries` an entry is."""
    return index - bundle.manifest.first_index


def with_entry(bundle: Bundle, index: int, line: EntryLine, raw: bytes) -> Bundle:
    """With another entry in one's place."""
    entries = list(bundle.entries)
    entries[line_at(bundle, index)] = (line, raw)
    return bundle.but(entries=entries)


@pytest.mark.parametrize("kind", [Kind.DECISION, 200])
def test_entry_of_an_unknown_kind_is_proved_like_any_other(kind: int, tmp_path: Path) -> None:
    """So an older verifier accepts a bundle with newer kinds, and detects alterations in it."""
    log = Log.of(20)
    index = log.add(b'{"type":"of the future"}', kind)  # type: ignore[arg-type]  # no Kind yet
    bundle = Bundle.of(log, 0, len(log.lines))
    assert failed(judged(bundle, tmp_path)) == {}
    line = bundle.entries[index][0]
    altered = with_entry(bundle, index, line, b'{"type":"of the past!!"}')
    assert "unedited" in failed(judged(altered, tmp_path))


@pytest.mark.slow
def test_frontier_of_every_range_yields_every_root() -> None:
    for size in range(1, 34):
        for begin in range(size + 1):
            for end in range(begin, size + 1):
                tree = Frontier(begin, [LOG.subtree(*each) for each in subtrees_before(begin)])
                tree.extend(b"".join(line.leaf for line in LOG.lines[begin:end]))
                assert tree.root == LOG.root(end)
                tree.finish(size, [LOG.subtree(*each) for each in subtrees_behind(end, size)])
                assert tree.root == LOG.root(size), (begin, end, size)


def test_unaltered_bundle_is_genuine(tmp_path: Path) -> None:
    verdict = judged(HONEST, tmp_path)
    ended = results(verdict)
    assert ended.pop("registry") == "not checked"  # its log has no baseline
    assert set(ended.values()) == {"verified"}
    assert verdict.is_genuine
    assert not verdict.is_undecided
    assert (verdict.events, verdict.erased, verdict.size) == (160, 0, 300)
    # The witness, what never came, the clock, what is done now, old versions, and whose word the
    # head of the file is: no more.
    assert len(verdict.limits) == 6


def test_keys_from_the_bundle_are_reported_as_no_proof_of_origin(tmp_path: Path) -> None:
    verdict = judged(HONEST.but(report=b"{}"), tmp_path, trusted=())
    assert verdict.is_genuine
    assert "are from the bundle itself" in verdict.limits[0]
    assert any("figures of the report" in limit for limit in verdict.limits)


@pytest.mark.parametrize(("begin", "end"), [(0, 300), (0, 1), (150, 151), (299, 300)])
def test_bundle_of_any_range_is_genuine(begin: int, end: int, tmp_path: Path) -> None:
    assert judged(Bundle.of(LOG, begin, end), tmp_path).is_genuine


@pytest.mark.parametrize("at_index", [0, 150, 300])
def test_bundle_without_entries_fails_the_range_check(at_index: int, tmp_path: Path) -> None:
    bundle = Bundle.of(LOG, at_index, at_index)
    verdict = judged(bundle, tmp_path)
    assert failed(verdict).keys() == {"range"}
    assert "no entries" in failed(verdict)["range"]

    of_indexes = msgspec.structs.replace(bundle.manifest, start=None, end=None)
    assert judged(bundle.but(manifest=of_indexes), tmp_path).is_genuine
    assert judged(Bundle.of(Log(), 0, 0), tmp_path).is_genuine


@pytest.mark.parametrize("begin_end", [(12, 40), (5, 15), (12, 15)])
def test_range_next_to_an_erased_entry_is_undecided(
    begin_end: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, index = erased_log()
    bundle = Bundle.of(log, *begin_end, declared=[index])
    verdict = judged(bundle, tmp_path)
    assert verdict.is_genuine, failed(verdict)
    assert verdict.is_undecided
    assert results(verdict)["range"] == "not checked"

    path, key = bundle.write(tmp_path / "e.zip"), tmp_path / "key.txt"
    key.write_text(str(KEY.verifier))
    assert main(["verify", str(path), "--key", str(key)]) == 2
    assert "may belong to the range, too" in capsys.readouterr().out


@pytest.mark.parametrize("size", [0, 20, 30, 40, 77, 100, 199, 200, 250, 300])
def test_earlier_checkpoint_of_the_same_ledger_is_verified(size: int, tmp_path: Path) -> None:
    bundle = HONEST
    if size in (77, 199):  # within the range no proof is needed
        bundle = Bundle.of(LOG, 40, 200)
    verdict = judged(bundle, tmp_path, previous=(LOG.checkpoint(size),))
    assert results(verdict)["previous"] == "verified", failed(verdict)


def test_previous_checkpoint_outside_the_bundle_is_undecided(tmp_path: Path) -> None:
    verdict = judged(HONEST, tmp_path, previous=(LOG.checkpoint(251),))
    assert results(verdict)["previous"] == "not checked"
    assert verdict.is_genuine
    assert verdict.is_undecided
    assert "previous=251" in "\n".join(verdict.lines())


def test_inconsistent_previous_checkpoint_fails(tmp_path: Path) -> None:
    other = Log.of(310)
    other.lines[7] = LOG.lines[8]
    for size in (30, 100, 300):
        verdict = judged(HONEST, tmp_path, previous=(other.checkpoint(size),))
        assert failed(verdict).keys() == {"previous"}, size
    verdict = judged(HONEST, tmp_path, previous=(Log.of(310).checkpoint(310),))
    assert "had 310 entries and now has 300" in failed(verdict)["previous"]
    verdict = judged(HONEST, tmp_path, previous=(LOG.checkpoint(30, OTHER_KEY),))
    assert "signature" in failed(verdict)["previous"] or "unknown" in failed(verdict)["previous"]


def test_previous_checkpoint_of_another_ledger_is_rejected(tmp_path: Path) -> None:
    foreign = Checkpoint("elsewhere.example/log", 30, LOG.root(30)).sign([KEY])
    with pytest.raises(FormatError, match="elsewhere"):
        judged(HONEST, tmp_path, previous=(foreign,))


ALTERED: dict[str, tuple[Callable[[Bundle], Bundle], dict[str, str]]] = {
    "an edited event": (
        lambda of: with_entry(of, 60, LOG.lines[60], LOG.raws[60].replace(b"60", b"61")),
        {"unedited": "entry 60: the event does not match the stored leaf"},
    ),
    "an edited leaf": (
        lambda of: with_entry(
            of, 60, msgspec.structs.replace(LOG.lines[60], leaf=bytes(32)), LOG.raws[60]
        ),
        {
            "unedited": "entry 60",
            "included": "leaves were edited, the events are genuine",
            "consistent": "the first 100 entries do not match",
        },
    ),
    "an edited event with the leaf that goes with it": (
        lambda of: with_entry(of, 60, *_remade(60)),
        {"included": "do not match the signed root", "consistent": "the first 100 entries"},
    ),
    "an event at another time": (
        lambda of: with_entry(
            of, 60, msgspec.structs.replace(LOG.lines[60], received_us=1), LOG.raws[60]
        ),
        {"unedited": "entry 60"},
    ),
    "a salt of another length": (
        lambda of: with_entry(
            of,
            60,
            msgspec.structs.replace(LOG.lines[60], salt=LOG.lines[60].salt + LOG.raws[60][:1]),
            LOG.raws[60],
        ),
        {"unedited": "entry 60"},
    ),
    "an event that is left out": (
        lambda of: of.but(entries=of.entries[:60] + of.entries[61:]),
        {"complete": "entry 100 is missing"},
    ),
    "a chunk that is left out at the end": (
        lambda of: of.but(entries=of.entries[:-10]),
        {"complete": "entries 190 to 199 are missing"},
    ),
    "an event that is there twice": (
        lambda of: of.but(entries=of.entries[:61] + of.entries[60:]),
        {"complete": "entry 100 is a duplicate"},
    ),
    "an event of another range": (
        lambda of: of.but(entries=[*of.entries, (LOG.lines[250], LOG.raws[250])]),
        {"complete": "entry 250 does not belong"},
    ),
    "two events in each other's place": (
        lambda of: _swapped(of, 60, 61),
        {"included": "do not match the signed root", "consistent": "the first 100 entries"},
    ),
    "a payload that nothing accounts for": (
        lambda of: with_entry(of, 60, EntryLine(60, LOG.lines[60].leaf), b""),
        {"erasures": "the payload of entry 60 is missing"},
    ),
    "a checkpoint signed with another key": (
        lambda of: of.but(checkpoints=of.checkpoints | {300: LOG.checkpoint(300, OTHER_KEY)}),
        {"signed": "the checkpoint of 300 entries: no known key"},
    ),
    "a checkpoint that was changed after it was signed": (
        lambda of: of.but(
            checkpoints=of.checkpoints | {300: of.checkpoints[300].replace(b"\n300\n", b"\n301\n")}
        ),
        {"signed": "it has 301 entries"},
    ),
    "a checkpoint that is none": (
        lambda of: of.but(checkpoints=of.checkpoints | {100: b"hello"}),
        {"signed": "the checkpoint of 100 entries: not a checkpoint", "consistent": ""},
    ),
    "a checkpoint of another ledger": (
        lambda of: of.but(
            checkpoints=of.checkpoints | {100: Checkpoint("a", 100, LOG.root(100)).sign([KEY])}
        ),
        {"signed": "it is from 'a'"},
    ),
    "a checkpoint in another's place": (
        lambda of: of.but(checkpoints=of.checkpoints | {100: LOG.checkpoint(90)}),
        {"signed": "it has 90 entries", "consistent": ""},
    ),
    "an earlier checkpoint of another ledger's entries": (
        lambda of: of.but(
            checkpoints=of.checkpoints | {100: Checkpoint(ORIGIN, 100, bytes(32)).sign([KEY])}
        ),
        {"consistent": "the first 100 entries do not match"},
    ),
    "hashes before it that are not the ledger's": (
        lambda of: of.but(
            tree=msgspec.structs.replace(of.tree, before=[bytes(32)] * len(of.tree.before))
        ),
        {"included": "do not match", "consistent": "the first 100 entries"},
    ),
    "too few hashes behind it": (
        lambda of: of.but(tree=msgspec.structs.replace(of.tree, behind=of.tree.behind[:-1])),
        {"included": "the proof has"},
    ),
    "a range that goes on behind the checkpoint": (
        lambda of: of.but(checkpoints={100: LOG.checkpoint(100)}),
        {"included": "the largest checkpoint has 100 entries"},
    ),
    "a range of time that begins earlier than the entries": (
        lambda of: of.but(manifest=msgspec.structs.replace(of.manifest, start=at(30))),
        {"range": "entries before the bundle's first may belong"},
    ),
    "a range of time that goes on behind the entries": (
        lambda of: of.but(manifest=msgspec.structs.replace(of.manifest, end=at(230))),
        {"range": "entries after the bundle's last may belong"},
    ),
    "a tool version that was edited": (
        lambda of: of.but(versions=(msgspec.structs.replace(VERSION, description="Digs"),)),
        {"registry": "'search' version 1 was edited"},
    ),
}


def _remade(index: int) -> tuple[EntryLine, bytes]:
    log = Log.of(index)
    log.add(b"another")
    return log.lines[index], log.raws[index]


def _swapped(bundle: Bundle, one: int, other: int) -> Bundle:
    entries = list(bundle.entries)
    for here, there in ((one, other), (other, one)):
        line = msgspec.structs.replace(LOG.lines[there], index=here)
        entries[line_at(bundle, here)] = (line, LOG.raws[there])
    return bundle.but(entries=entries)


@pytest.mark.parametrize("name", ALTERED)
def test_alteration_fails_the_expected_check(name: str, tmp_path: Path) -> None:
    alter, expected = ALTERED[name]
    failures = failed(judged(alter(HONEST), tmp_path))
    assert failures.keys() == expected.keys()
    for check, words in expected.items():
        assert words in failures[check]


def erased_log() -> tuple[Log, int]:
    """Of 100 entries; 10 to 19 are gone, and entry 60 says so."""
    log = Log.of(60)
    index = log.declare((10, 15), (15, 20))
    for number in range(39):
        log.add(b"%d" % number)
    log.erase(*range(10, 20))
    return log, index


def test_missing_payload_is_accepted_only_if_an_erasure_entry_covers_the_call(
    tmp_path: Path,
) -> None:
    log, index = erased_log()
    verdict = judged(Bundle.of(log, 5, 40, declared=[index]), tmp_path)
    assert verdict.is_genuine, failed(verdict)
    assert verdict.erased == 10
    log.erase(20, 39)
    verdict = judged(Bundle.of(log, 5, 40, declared=[index]), tmp_path)
    check = next(check for check in verdict.checks if check.name == "erasures")
    assert [problem[:28] for problem in check.problems] == [
        "the payload of entry 20 is m",
        "the payload of entry 39 is m",
    ]


def test_invalid_erasure_entry_covers_nothing(tmp_path: Path) -> None:
    log, index = erased_log()
    bundle = Bundle.of(log, 5, 40, declared=[index])
    line = bundle.erasures[0]
    entry = line.entry
    for words, other in {
        "size differs": msgspec.structs.replace(line, raw=line.raw + b" "),
        "not match its leaf": msgspec.structs.replace(
            line, raw=line.raw.replace(b"[[10, 15]", b"[[10, 25]")
        ),
        "its kind does not": msgspec.structs.replace(
            line, entry=msgspec.structs.replace(entry, kind=Kind.ACTION)
        ),
        "not match index 61": msgspec.structs.replace(
            line, entry=msgspec.structs.replace(entry, index=61)
        ),
        "hashes": msgspec.structs.replace(line, proof=line.proof[1:]),
    }.items():
        failures = failed(judged(bundle.but(erasures=[other]), tmp_path))
        assert failures.keys() == {"erasures"}
        assert words in failures["erasures"], failures


def test_erasure_entry_covers_no_later_entries(tmp_path: Path) -> None:
    log = Log.of(10)
    index = log.declare((5, 100))
    for number in range(20):
        log.add(b"%d" % number)
    log.erase(15)
    failures = failed(judged(Bundle.of(log, 0, 31, declared=[index]), tmp_path))
    assert "entry 15 is missing" in failures["erasures"]


def test_bundle_of_several_chunks_contains_every_event(tmp_path: Path) -> None:
    log = Log.of(9_000)
    verdict = judged(Bundle.of(log, 3, 8_999, sizes=[4_100, 9_000]), tmp_path)
    assert verdict.is_genuine, failed(verdict)
    assert verdict.events == 8_996


def test_verify_command_prints_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, key = HONEST.write(tmp_path / "e.zip"), tmp_path / "key.txt"
    key.write_text(f"{KEY.verifier}\n")
    kept = tmp_path / "kept.txt"
    kept.write_bytes(LOG.checkpoint(30))
    words = ["verify", str(path), "--key", str(key), "--previous", str(kept)]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "Genuine: all checks passed." in out
    assert "Not covered by this check:" in out
    assert main([*words[:2], "--key", str(KEY.verifier), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["genuine"] is True
    assert document["events"] == 160
    kept.write_bytes(LOG.checkpoint(251))
    assert main(words) == 2
    assert "not all requested checks" in capsys.readouterr().out
    HONEST.but(entries=HONEST.entries[1:]).write(path)
    assert main([*words[:2], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["genuine"] is False
    assert main(["verify", str(path)]) == 1
    assert "NOT GENUINE" in capsys.readouterr().out


def test_verify_command_rejects_unreadable_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = HONEST.write(tmp_path / "e.zip")
    for words in (
        ["verify", str(tmp_path / "none.zip")],
        ["verify", str(path), "--key", str(tmp_path / "none.txt")],
        ["verify", str(path), "--key", "a+b+c"],
        ["verify", str(path), "--previous", str(path)],
    ):
        assert main(words) == 2
        assert "cannot be checked" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "none.zip"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["genuine"] is None


def test_unknown_bundle_format_is_rejected(tmp_path: Path) -> None:
    manifest = msgspec.structs.replace(HONEST.manifest, format="tooltrail-evidence/9")
    with pytest.raises(UnreadableError, match="evidence/9"):
        judged(HONEST.but(manifest=manifest), tmp_path)
