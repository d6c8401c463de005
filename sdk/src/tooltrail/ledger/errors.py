"""Why data of the ledger is rejected. Each message says what is wrong, for people."""


class LedgerError(ValueError):
    """The base class of these errors."""


class FormatError(LedgerError):
    """A note, key, checkpoint, tile or proof violates its specification."""


class SignatureError(LedgerError):
    """No known key signed the note, or the signature of a known key is wrong."""


class UnknownSignerError(SignatureError):
    """No known key signed the note."""


class ProofError(LedgerError):
    """A Merkle proof does not lead to the expected root."""
