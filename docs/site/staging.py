"""The documents as Sphinx reads them: one folder, links to where they are on the site."""

import re
import shutil
from os.path import normpath
from pathlib import Path, PurePosixPath

from docs.site.contents import LABELS, ROOT, SECTIONS, documents

_LINK = re.compile(r"(!?)\[([^\]\n]*(?:\n[^\]\n]+)*)\]\(([^):\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_PICTURES = "pictures"


def stage(folder: Path, generated: dict[str, str]) -> None:
    """Write every document, and these generated ones by name, to an empty folder.

    Raises ValueError for a link to a file that does not exist.
    """
    names = documents()
    for path, name in names.items():
        text = _with_links_of_the_site((ROOT / path).read_text(), path, names, folder)
        if name == "index":
            text += "".join(_contents(section.names, section.heading) for section in SECTIONS)
        elif name.endswith("/index"):
            inside = sorted(
                each for each in names.values() if each != name and each.startswith(name[:-5])
            )
            text += _contents(tuple(inside))
        _write(folder, name, text)
    for name, text in generated.items():
        _write(folder, name, text)


def _write(folder: Path, name: str, text: str) -> None:
    file = folder / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _contents(names: tuple[str, ...], heading: str = "") -> str:
    caption = f":caption: {heading}\n" if heading else ""
    lines = "\n".join(
        f"{LABELS[name]} </{name}>" if name in LABELS else f"/{name}" for name in names
    )
    return f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n{caption}\n{lines}\n```\n"


def _with_links_of_the_site(text: str, path: str, names: dict[str, str], folder: Path) -> str:
    def link(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        file, hash_mark, anchor = target.partition("#")
        if not file:
            return found[0]
        aim = normpath(PurePosixPath(path).parent / file)
        if aim in names:
            return f"{mark}[{label}](/{names[aim]}.md{hash_mark}{anchor})"
        if not (ROOT / aim).exists():
            raise ValueError(f"{path} links to {file}, which does not exist")
        if mark:
            picture = folder / _PICTURES / PurePosixPath(aim).name
            picture.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / aim, picture)
            return f"![{label}](/{_PICTURES}/{picture.name})"
        # A file of the source: an installation does not serve it.
        return label if label.startswith("`") else f"{label} (`{aim}`)"

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)
