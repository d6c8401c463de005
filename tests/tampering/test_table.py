"""The table in docs/tampering.md is that of the kinds.

`TAMPERING_TABLE=write uv run pytest tests/tampering/test_table.py` writes it; `-s` prints it.
"""

import os
import sys

from tests.support.documents import ROOT
from tests.support.tampering.table import BEGIN, END, table

DOCUMENT = ROOT / "docs" / "tampering.md"


def test_document_has_the_table_of_the_kinds() -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = f"{before}{BEGIN}\n{table()}\n\n{END}{after}"
    if os.environ.get("TAMPERING_TABLE") == "write":
        DOCUMENT.write_text(wanted)
    sys.stdout.write(table())
    assert DOCUMENT.read_text() == wanted, "TAMPERING_TABLE=write writes it"
