"""Bundles after a rotation of keys and after a new epoch, judged with what an auditor kept."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tooltrail.evidence import Archive, Verdict, verify
from tooltrail.ledger import Checkpoint, FormatError, Kind, SigningKey, VerifierKey
from tooltrail.ledger.lines import to_base64

from sdk.tests.support.bundles import KEY, ORIGIN, Bundle, Log

NEW = SigningKey(ORIGIN, b"n" * 32)
AGAIN = f"{ORIGIN}/1"


def judged(
    bundle: Bundle, folder: Path, key: VerifierKey = KEY.verifier, *previous: bytes
) -> Verdict:
    with Archive(bundle.write(folder / "evidence.zip")) as archive:
        return verify(archive, trusted=[key], previous=previous)


def check(verdict: Verdict, name: str) -> Any:
    return next(each for each in verdict.checks if each.name == name)


def rotated(*, announced: bool = True) -> Bundle:
    """The old key signed 100 entries and 200, the new one 200 and 300; entry 50 announces it."""
    log = Log.of(50)
    document = {"public_key": to_base64(NEW.verifier.public)} if announced else {}
    index = log.add(msgspec.json.encode(document), Kind.KEY)
    for number in range(249):
        log.add(b"%d" % number)
    bundle = Bundle.of(log, 120, 180, sizes=[100, 200, 300], stated=[index])
    notes = {
        100: log.checkpoint(100, KEY),
        200: log.checkpoint(200, KEY, NEW),
        300: log.checkpoint(300, NEW),
    }
    return bundle.but(checkpoints=notes, keys=(str(KEY.verifier), str(NEW.verifier)))


def test_current_key_alone_is_enough_after_a_rotation(tmp_path: Path) -> None:
    verdict = judged(rotated(), tmp_path, NEW.verifier)
    assert verdict.is_genuine, "\n".join(verdict.lines())
    assert "1 smaller ones with other keys" in check(verdict, "signed").message


def test_old_key_alone_is_enough_because_an_entry_announces_the_new_one(tmp_path: Path) -> None:
    assert judged(rotated(), tmp_path).is_genuine
    verdict = judged(rotated(announced=False), tmp_path)
    assert "300 entries: no known key" in check(verdict, "signed").problems[0]


def test_announcement_behind_the_old_keys_last_checkpoint_is_not_believed(tmp_path: Path) -> None:
    """Who has only the new key could have written it."""
    bundle = rotated()
    later = {size: note for size, note in bundle.checkpoints.items() if size == 300}
    verdict = judged(bundle.but(checkpoints=later), tmp_path)
    assert "no known key" in check(verdict, "signed").problems[0]


def begun_again(
    size: int = 60, *, altered: bool = False, others: int = 0, **members: Any
) -> tuple[Bundle, bytes, bytes]:
    """A bundle of epoch 1, which began after `size` entries, and two kept checkpoints of epoch 0.

    They are of 40 entries, and of 100, of which those from `size` on are gone. `others` arrived
    after the restore and before the epoch, whose entry has these `members`.
    """
    old = Log.of(100)
    kept = old.checkpoint(40), old.checkpoint(100)
    log = Log.of(20)
    log.add(b"altered" if altered else old.raws[20])
    for index in range(21, size):
        log.add(old.raws[index])
    if not altered:
        log.lines[20:size], log.raws[20:size] = old.lines[20:size], old.raws[20:size]
    for number in range(others):
        log.add(b"other %d" % number)
    document = {"epoch": 1, "reason": "restored", **members}
    index = log.add(msgspec.json.encode(document), Kind.EPOCH)
    for number in range(100):
        log.add(b"later %d" % number)
    bundle = Bundle.of(log, 70, 90, sizes=[len(log.lines)], previous=[40, 100], stated=[index])
    signing = SigningKey(AGAIN, KEY.private)
    whole = len(log.lines)
    note = Checkpoint(AGAIN, whole, log.root(whole)).sign([signing])
    manifest = msgspec.structs.replace(bundle.manifest, origin=AGAIN)
    return bundle.but(manifest=manifest, checkpoints={whole: note}), *kept


def test_kept_checkpoint_of_an_earlier_epoch_is_a_state_of_the_new_one(tmp_path: Path) -> None:
    """The auditor's key has the old name: it is the same key."""
    bundle, kept, _ = begun_again()
    verdict = judged(bundle, tmp_path, KEY.verifier, kept)
    assert verdict.is_genuine, "\n".join(verdict.lines())
    assert not verdict.is_undecided
    assert check(verdict, "previous").result == "verified"


def test_entries_that_a_new_epoch_lost_are_named(tmp_path: Path) -> None:
    bundle, _, kept = begun_again()
    verdict = judged(bundle, tmp_path, KEY.verifier, kept)
    assert verdict.is_genuine
    assert verdict.is_undecided
    assert "entries 60 to 99 of your checkpoint are gone" in check(verdict, "previous").message
    assert "epoch 1 ('restored')" in check(verdict, "previous").message


def test_entries_that_others_replaced_before_the_new_epoch_are_named(tmp_path: Path) -> None:
    """A restored server took requests before somebody restarted its ledger."""
    bundle, kept, larger = begun_again(others=50, proved=60, differs=False)
    assert judged(bundle, tmp_path, KEY.verifier, kept).is_genuine
    verdict = judged(bundle, tmp_path, KEY.verifier, larger)
    assert verdict.is_genuine
    assert verdict.is_undecided
    gone = "entries 60 to 99 of your checkpoint are gone or were changed"
    assert gone in check(verdict, "previous").message


def test_epoch_that_began_although_entries_were_changed_fails(tmp_path: Path) -> None:
    bundle, _, kept = begun_again(others=50, proved=60, differs=True)
    verdict = judged(bundle, tmp_path, KEY.verifier, kept)
    assert check(verdict, "previous").result == "failed"


def test_history_rewritten_below_a_new_epoch_fails(tmp_path: Path) -> None:
    bundle, kept, _ = begun_again(altered=True)
    verdict = judged(bundle, tmp_path, KEY.verifier, kept)
    assert check(verdict, "previous").result == "failed"


def test_checkpoint_of_a_later_epoch_or_another_ledger_is_refused(tmp_path: Path) -> None:
    bundle = Bundle.of(Log.of(100), 20, 60)
    for origin in (AGAIN, "another.example/log/x"):
        signing = SigningKey(origin, KEY.private)
        kept = Checkpoint(origin, 40, bytes(32)).sign([signing])
        with pytest.raises(FormatError, match="your checkpoint is from"):
            judged(bundle, tmp_path, KEY.verifier, kept)
