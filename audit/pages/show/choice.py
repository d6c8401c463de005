"""One of a page's own choices, from its address."""

from collections.abc import Container

from django.http import Http404, HttpRequest


def choice(request: HttpRequest, name: str, choices: Container[str]) -> str:
    """Return the URL's value of `name`; '' if it has none.

    Raises Http404 for a value that is not a choice: without the filter the page would show more
    than was asked for.
    """
    value = request.GET.get(name, "")
    if value and value not in choices:
        raise Http404(f"no such {name}")
    return value
