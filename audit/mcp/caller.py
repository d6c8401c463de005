"""Who asks `/mcp`: a program with an API key, or a person with an access token."""

from django.http import HttpRequest

from tenants.identity.resource import PersonIdentity
from tenants.keys import ApiKeyIdentity

type Caller = ApiKeyIdentity | PersonIdentity


class McpRequest(HttpRequest):
    """A request of `/mcp`; read operations of the API take it as one with a key."""

    auth: Caller
