"""Every recorded row belongs to a test, or is exempt."""

from importlib import import_module

from sdk.tests.support.vectors import FOLDER, rows, tested

MODULES = (
    "contracts.test_recorded",
    "guard.test_models",
    "guard.test_recorded",
    "tools.test_canonical",
    "tools.test_recorded",
    "tracing.test_recorded",
)


def test_every_recorded_row_is_covered_by_a_test() -> None:
    for module in MODULES:
        import_module(f"sdk.tests.{module}")
    recorded = [row["id"] for path in sorted(FOLDER.glob("*.jsonl")) for row in rows(path.name)]

    assert len(recorded) == len(set(recorded)) == 2395
    assert set(recorded) == tested
