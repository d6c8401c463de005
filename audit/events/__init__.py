"""Events before they are stored: the wire contract, limits, redaction, judgement. Pure."""
