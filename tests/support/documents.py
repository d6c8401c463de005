"""The repository's Markdown documents."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "bench/*.md", "docs/**/*.md", "sdk/*.md", "sdk-js/*.md")
    for path in ROOT.glob(pattern)
)
