"""The error for schemas that cannot be used."""


class SchemaError(ValueError):
    """A schema is malformed, or requires something that could hang or reach the network.

    Raised when a guard is made, before the tool runs.
    """
