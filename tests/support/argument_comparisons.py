"""A comparison of arguments that the worker has finished."""

import re
from uuid import UUID

from audit.work import argument_comparison
from tests.support.factories import Cast
from tests.support.pages import signed_in


def compared_arguments(cast: Cast, query: str) -> str:
    """The address of the page that compares the arguments of these calls with others."""
    answer = signed_in(cast.editor).post("/apart/arguments", {"q": query, "range": "7d"})
    address: str = answer["Location"]
    match = re.fullmatch(r"/apart/arguments/([0-9a-f-]{36})", address)
    assert match is not None, address
    while argument_comparison.run_slice(cast.tenant.id, UUID(match[1])):
        pass
    return address
