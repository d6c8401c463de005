"""What a note says, as a form. The API reads its bodies with it, too."""

import re
from typing import Any

from django import forms

from audit.models import About, Note, NoteState
from audit.work.notes import LABEL_MAX, TEXT_MAX, Wanted
from tenants.members import people_of
from tenants.models import Tenant

_LABEL = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
_CONTROL = {"class": "form-control", "autocomplete": "off"}
_SELECT = {"class": "form-select"}


class NoteForm(forms.Form):
    """A text, a label, an assignee and a state. Needs the tenant's scope."""

    text = forms.CharField(
        required=False,
        max_length=TEXT_MAX,
        help_text="All members of the tenant can read it.",
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 4}),
    )
    label = forms.CharField(
        required=False,
        max_length=LABEL_MAX,
        help_text="One word, such as <code>flaky</code>. <code>label:flaky</code> finds the calls.",
        widget=forms.TextInput(attrs={**_CONTROL, "autocapitalize": "none", "spellcheck": "false"}),
    )
    assignee = forms.ChoiceField(required=False, widget=forms.Select(attrs=_SELECT))
    state = forms.ChoiceField(
        choices=NoteState.choices, initial=NoteState.OPEN, widget=forms.Select(attrs=_SELECT)
    )
    fixed_in = forms.CharField(
        label="Fixed in version",
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs=_CONTROL),
    )

    def __init__(self, tenant: Tenant, *args: Any, note: Note | None = None, **more: Any) -> None:
        if note is not None:
            more.setdefault("initial", {name: getattr(note, name) for name in self.base_fields})
        super().__init__(*args, **more)
        names = [one.user.get_username() for one in people_of(tenant).order_by("user__username")]
        if note is not None and note.assignee and note.assignee not in names:
            names.append(note.assignee)  # no longer a member; it stays until it is changed
        self.fields["assignee"].choices = [("", "nobody"), *((one, one) for one in names)]  # type: ignore[attr-defined]  # a ChoiceField

    def clean_label(self) -> str:
        """Labels are words of queries, in lower case."""
        label = str(self.cleaned_data["label"]).lower()
        if label and not _LABEL.fullmatch(label):
            raise forms.ValidationError("Use a-z, 0-9, '.', '_' and '-', without spaces.")
        return label

    def clean(self) -> dict[str, Any]:
        """A note says something; what is fixed says in which version."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        if not cleaned["text"] and not cleaned["label"]:
            self.add_error("text", "Enter a text or a label.")
        if cleaned["state"] != NoteState.FIXED:
            cleaned["fixed_in"] = ""
        elif not cleaned["fixed_in"]:
            self.add_error("fixed_in", "Enter the version that fixes it.")
        return cleaned

    def wanted(self) -> Wanted:
        """What the valid form says."""
        return Wanted(**{name: self.cleaned_data[name] for name in self.base_fields})


class FilterForm(forms.Form):
    """Which notes are listed. `me` as assignee is the user."""

    about = forms.ChoiceField(required=False, choices=[("", "Anything"), *About.choices])
    state = forms.ChoiceField(required=False, choices=[("", "All"), *NoteState.choices])
    label = forms.CharField(required=False, max_length=LABEL_MAX)
    assignee = forms.CharField(required=False, max_length=150)
