"""The version of the SDK; pyproject.toml has the same number."""

__version__ = "0.1.0"
