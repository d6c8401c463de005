"""Storage of static files: hashed names, compressed, and one style sheet without imports."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import Storage
from whitenoise.storage import CompressedManifestStaticFilesStorage

_IMPORT = re.compile(rb'^@import "([^"]+)";\n', re.MULTILINE)


class StaticStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # untyped
    """WhiteNoise's storage, with each `@import` line replaced by the imported style sheet.

    A browser requests an imported sheet only after it has read the importing one, and each request
    costs a first visit about 5 ms. The sheets also work unchanged, served from their folders.
    """

    def post_process(
        self, paths: dict[str, tuple[Storage, str]], *args: Any, **options: Any
    ) -> Iterator[tuple[str, str | None, Any]]:
        """Process the inlined sheets as the base class does. Django's `collectstatic` calls it."""
        whole = {
            name: (_Inlined(storage), path) if name.startswith("css/") else (storage, path)
            for name, (storage, path) in paths.items()
        }
        yield from super().post_process(whole, *args, **options)


class _Inlined:
    """A storage of sources that opens style sheets with their imports inlined."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def open(self, path: str) -> "ContentFile[bytes]":
        return ContentFile(self._text(path), name=path)

    def _text(self, path: str) -> bytes:
        with self._storage.open(path) as file:
            text: bytes = file.read()
        folder = posixpath.dirname(path)
        return _IMPORT.sub(
            lambda line: self._text(posixpath.normpath(posixpath.join(folder, line[1].decode()))),
            text,
        )
