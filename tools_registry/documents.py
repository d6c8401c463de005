"""The form field for a JSON document that a person types."""

import json
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tools_registry.schemas import check_text

_SURROGATE = re.compile("[\ud800-\udfff]")


class _Indented(json.JSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "indent": 2})


class DocumentField(forms.JSONField):
    """A JSON document typed by a person."""

    def __init__(self, *, rows: int = 16, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": rows, "cols": 80, "spellcheck": "false"})
        super().__init__(encoder=_Indented, widget=widget, **options)

    def to_python(self, value: Any) -> Any:
        """The document. Raises ValidationError.

        It is also raised if the document is nested too deep, has a number that is too long, or a
        text that the database cannot store.
        """
        try:
            document = super().to_python(value)
        except (RecursionError, ValueError) as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from error
        if isinstance(value, str) and document is not None:
            _check_storable(document)
        return document

    def bound_data(self, data: Any, initial: Any) -> Any:
        """The typed text, to be shown again."""
        try:
            return super().bound_data(data, initial)
        except (RecursionError, ValueError):
            return ""

    def prepare_value(self, value: Any) -> Any:
        """The text to show; lone surrogates are escaped, because no response can contain them."""
        text = super().prepare_value(value)
        if not isinstance(text, str):
            return text
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _check_storable(document: Any) -> None:
    waiting = [document]
    while waiting:
        match waiting.pop():
            case str() as text:
                try:
                    check_text(text)
                except ValueError as error:
                    raise ValidationError(f"The document {error}.", code="invalid") from None
            case dict() as members:
                waiting += [*members, *members.values()]
            case list() as items:
                waiting += items
