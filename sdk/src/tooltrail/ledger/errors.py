"""Why something of the ledger is not believed. Each message says what is wrong, for people."""


class LedgerError(ValueError):
    """What the errors here share; catch it to catch them all."""


class FormatError(LedgerError):
    """A note, key, checkpoint, tile or proof is not written as its specification says."""


class SignatureError(LedgerError):
    """No known key signed the note, or a signature in the name of a known key is wrong."""


class ProofError(LedgerError):
    """A Merkle proof does not lead to the root it is to lead to."""
