"""Which version of the SDK this is; pyproject.toml has the same."""

__version__ = "0.1.0"
