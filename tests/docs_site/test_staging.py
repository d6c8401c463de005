"""Documents are staged with links to where they are on the site; a dead link is an error."""

from pathlib import Path

import pytest

from docs.site import staging
from docs.site.contents import SECTIONS, documents
from docs.site.reference import GENERATED
from docs.site.reference.settings import documented_variables, read_variables


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repository"
    (root / "docs" / "adr").mkdir(parents=True)
    (root / "docs" / "alerts.md").write_text("# Alerts\n\n## Secrets\n")
    (root / "docs" / "picture.png").write_bytes(b"png")
    (root / "docs" / "adr" / "README.md").write_text("# Decisions\n")
    monkeypatch.setattr(staging, "ROOT", root)
    names = {"docs/alerts.md": "alerts", "docs/adr/README.md": "adr/index"}
    monkeypatch.setattr(staging, "documents", lambda: names)
    return root


def staged(root: Path, text: str) -> str:
    (root / "docs" / "alerts.md").write_text(text)
    folder = root.parent / "staged"
    staging.stage(folder, {"reference/api": "# API\n"})
    assert (folder / "reference" / "api.md").read_text() == "# API\n"
    return (folder / "alerts.md").read_text()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[why](adr/README.md#reasons)", "[why](/adr/index.md#reasons)"),
        ("[below](#secrets)", "[below](#secrets)"),
        ("[out](https://example.org/a.md)", "[out](https://example.org/a.md)"),
        ("[two\nlines](alerts.md)", "[two\nlines](/alerts.md)"),
        ("![a picture](picture.png)", "![a picture](/pictures/picture.png)"),
        ("[the picture](picture.png)", "the picture (`docs/picture.png`)"),
        ("```sh\n[x](gone.md)\n```", "```sh\n[x](gone.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(repository: Path, written: str, expected: str) -> None:
    assert staged(repository, written) == expected


def test_picture_is_copied(repository: Path) -> None:
    staged(repository, "![a picture](picture.png)")

    assert (repository.parent / "staged" / "pictures" / "picture.png").read_bytes() == b"png"


def test_dead_link_names_document_and_target(repository: Path) -> None:
    with pytest.raises(ValueError, match=r"docs/alerts.md links to gone.md"):
        staged(repository, "[x](gone.md)")


def test_every_section_names_documents_or_generated_pages() -> None:
    names = [name for section in SECTIONS for name in section.names]

    assert len(names) == len(set(names))
    assert set(names) - set(documents().values()) == set(GENERATED)


@pytest.mark.slow
def test_reference_has_exactly_the_documented_variables() -> None:
    assert read_variables().keys() == documented_variables().keys()
