"""The registry and the report of a bundle against the entries that say what they are."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tooltrail.evidence import Archive, UnreadableError, Verdict, verify
from tooltrail.evidence.layout import RegisteredVersion
from tooltrail.evidence.statements import report_digest
from tooltrail.ledger import Kind
from tooltrail.tools.digest import tool_digest

from sdk.tests.support.bundles import BEGAN, KEY, VERSION, Bundle, Log, at


def version(number: int, name: str = "search", **members: Any) -> RegisteredVersion:
    """A published version."""
    description = members.pop("description", f"Looks {number}")
    digest = tool_digest(name=name, description=description, input_schema={"type": "object"})
    return msgspec.structs.replace(
        VERSION,
        tool_name=name,
        number=number,
        description=description,
        digest=digest,
        published_at=at(number),
        **members,
    )


FIRST, SECOND, THIRD, OTHER = version(1), version(2), version(3), version(1, "other")


def judged(bundle: Bundle, folder: Path) -> Verdict:
    with Archive(bundle.write(folder / "evidence.zip")) as archive:
        return verify(archive, trusted=[KEY.verifier])


def registry_of(bundle: Bundle, folder: Path) -> tuple[str, str]:
    """Result of the check of the registry, and its problems or message."""
    verdict = judged(bundle, folder)
    check = next(each for each in verdict.checks if each.name == "registry")
    others = [each.name for each in verdict.checks if each.problem_count and each is not check]
    assert not others, "\n".join(verdict.lines())
    return check.result, "; ".join(check.problems) or check.message


@dataclass
class Case:
    """A log with a baseline of the first version and actions that publish the others."""

    log: Log
    stated: list[int]

    @classmethod
    def make(cls, **members: object) -> "Case":
        log = Log.of(5)
        stated = [log.baseline(FIRST), log.publish(SECOND), log.publish(THIRD, **members)]
        stated.append(log.publish(OTHER))
        for number in range(60):
            log.add(b"%d" % number)
        return cls(log, stated)

    def bundle(self, *versions: RegisteredVersion, begin: int = 20) -> Bundle:
        """A bundle whose range does not have the statements."""
        of = Bundle.of(self.log, begin, 50, stated=self.stated)
        return of.but(versions=versions)


def test_published_versions_are_verified_from_baseline_and_actions(tmp_path: Path) -> None:
    bundle = Case.make().bundle(FIRST, SECOND, THIRD, OTHER)
    assert registry_of(bundle, tmp_path)[0] == "verified"
    limits = " ".join(judged(bundle, tmp_path).limits)
    assert "README.txt" in limits and "its baseline" not in limits


ALTERED: dict[str, tuple[list[RegisteredVersion], str]] = {
    "replaced": (
        [FIRST, version(2, description="Digs"), THIRD, OTHER],
        "'search' version 2 is not the contract that was published",
    ),
    "replaced in the baseline": (
        [version(1, description="Digs"), SECOND, THIRD, OTHER],
        "'search' version 1 is not the contract that was published",
    ),
    "removed": ([FIRST, THIRD, OTHER], "'search' version 2 was published and is missing"),
    "the last one removed": ([FIRST, SECOND, OTHER], "'search' version 3 was published and is"),
    "a tool removed": ([FIRST, SECOND, THIRD], "'other' version 1 was published and is missing"),
    "invented": (
        [FIRST, SECOND, THIRD, version(4), OTHER],
        "'search' version 4: no entry of the ledger says that it was published",
    ),
    "renumbered": (
        [FIRST, SECOND, version(99, description="Looks 3"), OTHER],
        "'search' version 99: no entry",
    ),
    "redated": (
        [FIRST, msgspec.structs.replace(SECOND, published_at=at(0)), THIRD, OTHER],
        "'search' version 2 was published at",
    ),
    "by another": (
        [FIRST, msgspec.structs.replace(SECOND, published_by="eve"), THIRD, OTHER],
        "by 'ada', not as stated",
    ),
}


@pytest.mark.parametrize("name", ALTERED)
def test_altered_registry_fails(name: str, tmp_path: Path) -> None:
    versions, words = ALTERED[name]
    result, output = registry_of(Case.make().bundle(*versions), tmp_path)
    assert result == "failed"
    assert words in output


def test_statement_removed_with_its_version_is_missed_in_the_numbers(tmp_path: Path) -> None:
    case = Case.make()
    del case.stated[1]
    result, output = registry_of(case.bundle(FIRST, THIRD, OTHER), tmp_path)
    assert (result, output) == ("failed", "'search' version 2 is missing")


def test_publication_in_the_range_needs_no_statement(tmp_path: Path) -> None:
    case = Case.make()
    case.stated = []
    bundle = case.bundle(FIRST, SECOND, THIRD, OTHER, begin=0)
    assert registry_of(bundle, tmp_path)[0] == "verified"
    without = case.bundle(FIRST, SECOND, THIRD, begin=0)
    assert "'other' version 1 was published" in registry_of(without, tmp_path)[1]


def test_statement_that_is_not_in_the_ledger_fails(tmp_path: Path) -> None:
    case = Case.make()
    bundle = case.bundle(FIRST, SECOND, THIRD, OTHER)
    forged = msgspec.structs.replace(bundle.statements[1], raw=b"{}")
    altered = bundle.but(statements=(bundle.statements[0], forged, *bundle.statements[2:]))
    result, output = registry_of(altered, tmp_path)
    assert result == "failed"
    assert "the statement at entry 6 is invalid" in output


def test_actions_of_older_releases_prove_no_contract(tmp_path: Path) -> None:
    log = Log.of(5)
    stated = [log.act("tool.publish", "search", version=1)]
    for number in range(60):
        log.add(b"%d" % number)
    bundle = Bundle.of(log, 20, 50, stated=stated).but(versions=(FIRST,))
    result, output = registry_of(bundle, tmp_path)
    assert (result, output[:6]) == ("not checked", "1 of 1")
    assert judged(bundle, tmp_path).is_genuine


def test_baseline_proves_what_an_older_release_published_in_the_range(tmp_path: Path) -> None:
    """The actions of the range are read after the statements, whichever came first."""
    log = Log.of(5)
    log.publish(FIRST, digest="")
    stated = [log.baseline(FIRST)]
    for number in range(20):
        log.add(b"%d" % number)
    bundle = Bundle.of(log, 0, 20, stated=stated)
    assert registry_of(bundle.but(versions=[FIRST]), tmp_path)[0] == "verified"
    forged = msgspec.structs.replace(version(2), number=1)
    assert registry_of(bundle.but(versions=[forged]), tmp_path)[0] == "failed"


def test_version_that_is_published_again_is_the_first_one(tmp_path: Path) -> None:
    """Whoever writes to the database can add an action of now, and cannot take the first away."""
    log = Log.of(5)
    log.baseline()
    forged = msgspec.structs.replace(version(2), number=1)
    stated = [5, log.publish(FIRST), log.publish(forged)]
    for number in range(20):
        log.add(b"%d" % number)
    bundle = Bundle.of(log, 0, 20, stated=stated)
    assert registry_of(bundle.but(versions=[FIRST]), tmp_path)[0] == "verified"
    result, problem = registry_of(bundle.but(versions=[forged]), tmp_path)
    assert (result, problem) == (
        "failed",
        "'search' version 1 is not the contract that was published",
    )


def test_versions_that_are_too_large_may_be_left_out_if_they_are_the_oldest(
    tmp_path: Path,
) -> None:
    bundle = Case.make().bundle(THIRD)
    manifest = msgspec.structs.replace(bundle.manifest, versions_left_out=3)
    assert registry_of(bundle.but(manifest=manifest), tmp_path)[0] == "verified"
    newest_gone = bundle.but(manifest=manifest, versions=(FIRST, OTHER))
    assert "'search' version 3 was published" in registry_of(newest_gone, tmp_path)[1]


def test_format_1_is_readable_and_proves_no_registry(tmp_path: Path) -> None:
    bundle = Case.make().bundle(FIRST, begin=20)
    path = bundle.write(tmp_path / "evidence.zip")
    old = tmp_path / "old.zip"
    rewritten(path, old, format="tooltrail-evidence/1")
    with Archive(old) as archive:
        verdict = verify(archive, trusted=[KEY.verifier])
    assert verdict.is_genuine
    assert {each.name: each.result for each in verdict.checks}["registry"] == "not checked"


def test_format_1_with_statements_is_rejected(tmp_path: Path) -> None:
    bundle = Case.make().bundle(FIRST)
    manifest = msgspec.structs.replace(bundle.manifest, format="tooltrail-evidence/1")
    path = bundle.but(manifest=manifest).write(tmp_path / "evidence.zip")
    with (
        pytest.raises(UnreadableError, match="does not fit tooltrail-evidence/1"),
        Archive(path) as archive,
    ):
        verify(archive)


def rewritten(source: Path, target: Path, **manifest: Any) -> None:
    """A bundle without its statements, as older servers wrote it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "bundle.json":
                document = json.loads(data) | manifest
                document.pop("versions_left_out", None)
                data = json.dumps(document).encode()
            if name != "statements.ndjson":
                new.writestr(name, data)


REPORT_ID = UUID(int=5)
DOCUMENT = {"id": str(REPORT_ID), "figures": {"calls": {"count": 1, "rate": 0.5}}}


def report_bundle(document: dict[str, Any], **members: object) -> Bundle:
    log = Log.of(5)
    details = {"report": str(REPORT_ID), "sha256": report_digest(DOCUMENT)} | members
    index = log.act("report.create", "since:…", **details)
    for number in range(60):
        log.add(b"%d" % number)
    bundle = Bundle.of(log, 20, 50, stated=[index])
    manifest = msgspec.structs.replace(bundle.manifest, report_id=REPORT_ID)
    report = json.dumps({"tenant": "Acme", **document}, indent=1).encode()
    return bundle.but(manifest=manifest, report=report, versions=())


def report_check(bundle: Bundle, folder: Path) -> str:
    checks = judged(bundle, folder).checks
    return next(each.result for each in checks if each.name == "report")


def test_report_is_held_against_the_hash_of_its_creation(tmp_path: Path) -> None:
    assert report_check(report_bundle(DOCUMENT), tmp_path) == "verified"
    altered = DOCUMENT | {"figures": {"calls": {"count": 2, "rate": 0.5}}}
    assert report_check(report_bundle(altered), tmp_path) == "failed"
    assert report_check(report_bundle(altered, sha256=""), tmp_path) == "not checked"


def erased(*, actor: str = "ada", confirmed: bool = True, kind: Kind = Kind.ERASURE) -> Bundle:
    """A bundle with erased payloads, which an entry behind the baseline declares."""
    log = Log.of(30)
    stated = [log.baseline()]
    if confirmed:
        stated.append(log.act("erasure.confirm", "e-1", reason="GDPR"))
    declaration = {"ranges": [(22, 25)], "actor": actor, "reason": "GDPR", "erasure": "e-1"}
    index = log.add(json.dumps(declaration).encode(), kind)
    for number in range(60):
        log.add(b"%d" % number)
    log.erase(22, 23, 24)
    bundle = Bundle.of(log, 20, 28, declared=[index], stated=stated)
    return bundle.but(versions=())


def erasures_of(bundle: Bundle, folder: Path) -> list[str]:
    checks = judged(bundle, folder).checks
    return next(each.problems for each in checks if each.name == "erasures")


def test_erasure_needs_an_earlier_confirmation_by_the_same_person(tmp_path: Path) -> None:
    assert erasures_of(erased(), tmp_path) == []
    wanted = "but no entry before it says that they confirmed it"
    assert wanted in erasures_of(erased(actor="eve"), tmp_path)[0]
    assert wanted in erasures_of(erased(confirmed=False), tmp_path)[0]


def test_retention_needs_a_setting_in_force(tmp_path: Path) -> None:
    problems = erasures_of(erased(kind=Kind.RETENTION), tmp_path)
    assert problems == ["entry 32: payloads expired, but no setting lets them expire"]


def test_times_that_run_backwards_are_named(tmp_path: Path) -> None:
    log = Log.of(30)
    log.add(b"late", received=BEGAN.timestamp() - 3_600)
    for number in range(60):
        log.add(b"%d" % number)
    verdict = judged(Bundle.of(log, 20, 40).but(versions=()), tmp_path)
    assert verdict.is_genuine
    assert any(limit.startswith("Entry 30 arrived 60 minutes before") for limit in verdict.limits)
