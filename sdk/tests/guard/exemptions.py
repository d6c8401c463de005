"""Recorded rows that do not bind, by the decision they fall under. Numbers: "Guard" 1 – 9.

Listed one by one: a row that is not here must pass.
"""

from typing import Any

_EXEMPT = {
    "decision 1: coercion toggles work": """
        grd-0334 grd-0336 grd-0337 grd-0339 grd-0340 grd-0342 grd-0345 grd-0350 grd-0352
        grd-0355 grd-0357""",
    "decision 1: coercion reaches integers, lists of types, allOf, additionalProperties": """
        grd-0055 grd-0127 grd-0238 grd-0239 grd-0241 grd-0327 grd-0329 grd-0438""",
    "decision 2: a custom validator decides": "grd-0366",
    "decision 3: fields may have their own strategy": "grd-0363",
    "decision 4: Guard.validate repairs": "cg-0003",
    "decision 6: strip-extra only removes what a schema declares away": """
        grd-0372 grd-0373 grd-0380 grd-0381 grd-0439 grd-0478 grd-0590 grd-0653
        tbx-0063 tbx-0071""",
    "decision 7: all of JSON Schema is honoured": """
        val-0201 val-0202 val-0205 val-0207 val-0216 val-0702 val-0707 val-0708 val-0711
        val-0715 val-0717 val-0721 grd-0377 tbx-0073 tbx-0074 tbx-0075 tbx-0076 tbx-0081
        tbx-0082 tbx-0083""",
    "decision 7: any keyword makes a schema, none raises": """
        val-0725 val-0726 val-0728 val-0729 val-0732 det-0015 det-0018 det-0037 tbx-0092""",
    "decision 7: a malformed schema raises when the guard is made": """
        val-0177 val-0179 val-0180 val-0587 val-0652 val-0653 val-0749 val-0753 val-0754""",
    "decision 7: look-around and back-references are refused": """
        val-0513 val-0514 val-0535 val-0536 val-0549 val-0557 val-0558 val-0559""",
    "decision 8: Python types take Zod's place, and TypeBox has none": """
        det-0001 det-0003 det-0005 det-0043""",
    "decision 9: JavaScript's value rules, not its objects' inherited members": """
        val-0744 val-0745 val-0747""",
    "Python API: unknown codes, severities and strategies raise ValueError": """
        grd-0150 grd-0151 fmt-0119 fmt-0120 fmt-0121 fmt-0123 fmt-0124 fmt-0126 fmt-0129
        fmt-0131 fmt-0132 fmt-0134""",
    "Python API: wrap forwards all arguments": "cg-0012 cg-0016",
}
REASONS = tuple(_EXEMPT)
_REASON_OF = {row: reason for reason, rows in _EXEMPT.items() for row in rows.split()}


def reason(row: dict[str, Any]) -> str | None:
    """The decision a row falls under, if it does not bind."""
    return _REASON_OF.get(row["id"])
