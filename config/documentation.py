"""The documentation at `/docs/`: files that `docs.site` built, readable without signing in.

A release contains them. A checkout has them after `BUILD`; until then its documents are shown as
they are written.
"""

from functools import lru_cache
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from whitenoise import WhiteNoise

from config.instance import BASE_DIR

FOLDER = BASE_DIR / "docs"
BUILT = FOLDER / "built"
BUILD = "uv run --group docs python -m docs.site"
"""The command that builds the site in a checkout."""


@require_safe
def documentation(request: HttpRequest, path: str = "") -> HttpResponse:
    """Serve a file of the site: with `Last-Modified`, `ETag`, ranges and a minute in caches.

    Raises Http404 for any other path: only files that were listed beforehand are ever opened.
    """
    try:
        built_ns = (BUILT / "index.html").stat().st_mtime_ns
    except FileNotFoundError:
        return _as_written(request, path)
    file = _site(BUILT, built_ns).files.get(f"/docs/{path}")
    if file is None:
        raise Http404
    answer = file.get_response("GET", request.META)  # the body of a HEAD is left out later
    content = b""
    if answer.file is not None:
        with answer.file:
            content = answer.file.read()  # tests hold each file below 1 MiB
    return HttpResponse(content, status=answer.status.value, headers=dict(answer.headers))


@lru_cache(maxsize=1)
def _site(folder: Path, built_ns: int) -> WhiteNoise:
    """The site's files as listed after this build, so that a later build needs no restart."""
    return WhiteNoise(None, folder, "docs/", index_file=True, allow_all_origins=False)


def _as_written(request: HttpRequest, path: str) -> HttpResponse:
    """Show a document as text, and how to build the site."""
    files = sorted(FOLDER.rglob("*.md"), key=lambda file: (len(file.parts), file))
    documents = {_name(file): file for file in files}
    for readme in BASE_DIR.glob("sdk*/README.md"):  # a wheel has none
        documents[readme.parent.name] = readme
    name = path.strip("/")
    if name not in documents:
        raise Http404
    context = {
        "command": BUILD,
        "name": name,
        "names": [each for each in documents if each],
        "text": documents[name].read_text(),
    }
    return render(request, "documentation.html", context)


def _name(file: Path) -> str:
    """The address of a document below `/docs/`, as on the site: a README is its folder's."""
    below = file.relative_to(FOLDER).with_suffix("")
    return (below.parent if below.name == "README" else below).as_posix().removeprefix(".")
