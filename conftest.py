"""The option `--sample` of all tests, the SDK's included."""

import pytest

from tests.support import sampling


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        action="store_true",
        help="some of the long tests and generated cases, chosen by --randomly-seed",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the sample if `--sample` was given."""
    if config.getoption("sample"):
        chosen = sampling.choose(items, sampling.seed(config))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the seed, even with --quiet: it repeats this sample."""
    if config.getoption("sample"):
        terminalreporter.write_line(f"sample: --randomly-seed={sampling.seed(config)}")
