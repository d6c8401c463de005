"""Build the documentation: `uv run --group docs python -m docs.site [FOLDER]`.

The default is `docs/built`, which the server serves at `/docs/`. The same commit gives the same
files. Any warning of Sphinx, such as a dead link or a missing anchor, ends the build.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import django
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

from docs.site.contents import ROOT
from docs.site.sphinx_settings import SETTINGS
from docs.site.staging import stage

_NOT_SERVED = (".buildinfo", "objects.inv", "_sources")
_UNUSED = ("*.map", "*.LICENSE.txt")


def main() -> None:
    """Build into an empty folder, then put it in place of the last build."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "docs" / "built")
    target: Path = parser.parse_args().folder.resolve()
    if target.exists() and not (target / "searchindex.js").exists() and any(target.iterdir()):
        sys.exit(f"{target} holds something else. Name an empty folder.")
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # no file names the time it was built
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # The help of commands names the databases that the settings know, here or in this checkout's
    # `var/`. Nothing connects to one.
    for name in [name for name in os.environ if name.startswith("DATABASE_")]:
        del os.environ[name]
    os.environ["DATABASE_URL"] = "postgresql://nowhere/tooltrail"
    django.setup()
    from docs.site.reference import pages  # it needs Django's settings

    with tempfile.TemporaryDirectory(prefix="tooltrail-docs-") as work:
        source, built = Path(work, "source"), Path(work, "built")
        source.mkdir()
        try:
            stage(source, pages())
            _build(source, built, Path(work, "doctrees"))
        except (SphinxError, ValueError) as error:
            sys.exit(f"The documentation was not built: {error}")
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, target)


def _build(source: Path, built: Path, trees: Path) -> None:
    """Run Sphinx. Raises SphinxError at the first warning."""
    application = Sphinx(
        source,
        None,
        built,
        trees,
        "dirhtml",
        SETTINGS,
        status=None,
        warningiserror=True,
    )
    application.build(force_all=True)
    if application.statuscode:
        raise SphinxError("see the warnings above")
    for name in _NOT_SERVED:
        path = built / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for pattern in _UNUSED:
        for path in (built / "_static").rglob(pattern):
            path.unlink()


if __name__ == "__main__":
    main()
