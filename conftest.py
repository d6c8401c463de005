"""The option `--sample` and the number of processes of all tests, the SDK's included."""

import os

import pytest

from tests.support import sampling


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        action="store_true",
        help="some of the long tests and generated cases, chosen by --randomly-seed",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process a core for all tests, none beside pytest's own for those that a command names.

    Each process starts a PostgreSQL, which takes longer than most files of tests.
    """
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not everything or config.getoption("collectonly"):
        return 0
    return os.process_cpu_count() or 1


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
