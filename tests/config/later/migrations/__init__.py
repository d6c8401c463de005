"""The migrations of `audit` and one more, as a later version would have it."""

from audit import migrations

__path__ = [*__path__, *migrations.__path__]
