"""Why a connection failed, for people."""

import socket
import ssl


def words_of(error: Exception) -> str | None:
    """One sentence; None for an error that is not about the connection or its certificate."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"The certificate is not valid: {error.verify_message}."
        case ssl.SSLError():
            return f"TLS failed: {error.reason or error}."
        case TimeoutError():
            return "No answer in time."
        case socket.gaierror():
            return "The host name is unknown."
        case ConnectionRefusedError():
            return "The connection was refused."
        case ConnectionError():
            return f"The connection broke: {type(error).__name__}."
        case _:
            return None
