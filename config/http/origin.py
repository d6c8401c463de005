"""The address of this server, for links that are read elsewhere: never the one a request names."""

from django.conf import settings

from config import instance


def own_url() -> str:
    """This server's address for links.

    The first of `TOOLTRAIL_ORIGINS`, else its name; without a name localhost and the port of `up`.
    """
    named = [origin for origin in settings.CSRF_TRUSTED_ORIGINS if "*" not in origin]
    if named:
        return named[0].rstrip("/")
    scheme = "https" if settings.HTTPS else "http"
    port = instance.served_port() if settings.LEDGER_HOST == "localhost" else None
    return f"{scheme}://{settings.LEDGER_HOST}{f':{port}' if port else ''}"
