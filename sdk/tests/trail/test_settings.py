"""Options: argument, environment, default; an invalid variable never stops the host."""

from dataclasses import fields

import pytest
from tooltrail import Trail
from tooltrail.settings import Settings


def test_argument_overrides_environment_and_environment_overrides_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLTRAIL_CAPTURE", "shape")
    monkeypatch.setenv("TOOLTRAIL_MAX_BYTES", "1000")
    settings = Settings.resolve(capture="none")
    assert (settings.capture, settings.max_bytes, settings.spool) == ("none", 1000, "process")


def test_invalid_environment_variable_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOOLTRAIL_SPOOL", "floppy")
    monkeypatch.setenv("TOOLTRAIL_MAX_AGE_DAYS", "-1")
    settings = Settings.resolve()
    assert (settings.spool, settings.max_age_days) == ("process", 7.0)
    assert "TOOLTRAIL_SPOOL" in caplog.text
    assert "TOOLTRAIL_MAX_AGE_DAYS" in caplog.text


def test_invalid_argument_raises_value_error() -> None:
    with pytest.raises(ValueError, match="spool: expected one of process, fsync, memory"):
        Trail("http://x", "k", spool="floppy")  # type: ignore[arg-type]  # what mypy would refuse
    with pytest.raises(ValueError, match="max_bytes"):
        Trail("http://x", "k", max_bytes=0)


def test_every_option_is_documented() -> None:
    for option in fields(Settings):
        assert option.metadata["env"] == f"TOOLTRAIL_{option.name.upper()}"
        assert option.metadata["doc"].endswith((".", "`"))
