"""The form with which people edit a tool's next version."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from django import forms

from tools_registry.contract_check import Checked, check_typed
from tools_registry.models import ContractModel, OnCollision, ToolDraft, ToolVersion

CONTRACT = (
    "description",
    "input_schema",
    "output_schema",
    "trusted",
    "ephemeral",
    "on_collision",
    "meta",
)
_DOCUMENTS = ("input_schema", "output_schema", "meta")
_EXAMPLES = {"input_schema": "args_examples", "output_schema": "output_examples"}


def _document(label: str, rows: int, *, hint: str = "", has_editor: bool = True) -> forms.CharField:
    attrs: dict[str, Any] = {
        "class": "form-control mono",
        "rows": rows,
        "spellcheck": "false",
        "autocomplete": "off",
    }
    if has_editor:
        attrs["data-json-editor"] = ""
    widget = forms.Textarea(attrs=attrs)
    return forms.CharField(label=label, required=False, strip=False, widget=widget, help_text=hint)


class DraftForm(forms.Form):
    """A contract as text, and examples to validate, which are not stored.

    `revision` is the draft's revision that the user has seen; 0: there was no draft. `clean`
    parses the documents and stores the result in `checked`.
    """

    revision = forms.IntegerField(widget=forms.HiddenInput, min_value=0, required=False)
    description = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
        help_text="Sent to the model with every request.",
    )
    input_schema = _document("Input schema", 16)
    output_schema = _document("Output schema", 16, hint="Leave empty to skip output validation.")
    trusted = forms.BooleanField(
        required=False, help_text="The host may act on results without confirmation."
    )
    ephemeral = forms.BooleanField(required=False, help_text="Valid for one turn.")
    on_collision = forms.ChoiceField(
        label="On name conflict",
        choices=OnCollision,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    meta = _document("Meta", 4, hint="Labels. Not part of the digest.")
    output_examples = _document(
        "Example outputs",
        6,
        hint="JSON. Separate examples with a --- line. Not stored.",
        has_editor=False,
    )
    args_examples = _document("Example arguments", 4, has_editor=False)

    def __init__(self, data: Any = None, *, name: str, known: list[ContractModel]) -> None:
        super().__init__(data)
        self._name = name
        self._known = [schema for one in known for schema in (one.input_schema, one.output_schema)]
        self.checked = Checked()

    @classmethod
    def of(cls, draft: ToolDraft, known: list[ContractModel]) -> "DraftForm":
        """An unbound form with a draft's contract."""
        form = cls(name=draft.tool.name, known=known)
        form.initial = {"revision": draft.revision, **texts_of(draft)}
        return form

    def clean(self) -> dict[str, Any]:
        """Check the contract by the same rules as for executors."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        typed = {member: cleaned.get(member, "") for member in CONTRACT}
        # Browsers always send line ends as CR LF, whatever was stored.
        typed["description"] = typed["description"].replace("\r\n", "\n")
        examples = {member: cleaned.get(source, "") for member, source in _EXAMPLES.items()}
        self.checked = check_typed(self._name, typed, examples, known=self._known)
        for problem in self.checked.problems:
            if not problem.is_warning:
                at = f" (at {problem.pointer})" if problem.pointer else ""
                self.add_error(problem.member, f"{problem.message}{at}")
        return cleaned


def texts_of(source: ToolDraft | ToolVersion) -> dict[str, Any]:
    """A contract's members as shown in the form."""
    values = {member: getattr(source, member) for member in CONTRACT}
    return {
        member: _text(value) if member in _DOCUMENTS else value for member, value in values.items()
    }


class DifferingField(NamedTuple):
    """A field whose stored text differs from the typed one."""

    label: str
    text: str


def differing(mine: Mapping[str, Any], stored: ToolDraft) -> list[DifferingField]:
    """Each member in which a saved draft differs from the typed one, with the stored text."""
    fields: list[DifferingField] = []
    for member, text in texts_of(stored).items():
        typed = mine.get(member)
        same = (
            _same_document(typed, text) if member in _DOCUMENTS else _plain(typed) == _plain(text)
        )
        if not same:
            label = DraftForm.base_fields[member].label or member.replace("_", " ").capitalize()
            shown = {True: "yes", False: "no"}.get(text, text) if isinstance(text, bool) else text
            fields.append(DifferingField(str(label), str(shown)))
    return fields


def _text(document: Any) -> str:
    """A document as indented JSON; '' for None."""
    return "" if document is None else json.dumps(document, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


def _same_document(typed: Any, text: str) -> bool:
    try:
        return bool(json.loads(typed or "null") == json.loads(text or "null"))
    except (ValueError, RecursionError):
        return False
