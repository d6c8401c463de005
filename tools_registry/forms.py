"""Forms for a tool: its name, its description, and the reason of a change."""

from typing import Any

from django import forms
from django.contrib.postgres.forms import SimpleArrayField
from tooltrail.events import NAME_MAX_LENGTH

from tools_registry.changes import REASON_MAX_LENGTH
from tools_registry.documents import DocumentField
from tools_registry.models import Tool
from tools_registry.schemas import check_meta, check_name

TAGS_MAX = 20
_TAG_LENGTH = 50


class NameForm(forms.Form):
    """The name of a new tool."""

    name = forms.CharField(max_length=NAME_MAX_LENGTH, strip=True)

    @property
    def problem(self) -> str:
        """The problem, worded to follow "its name"."""
        name = self.data.get("name", "").strip()
        return "must consist of printable characters" if name else "must not be empty"

    def clean_name(self) -> str:
        """The name, checked by the same rules as an executor's. Raises ValidationError."""
        try:
            return check_name(self.cleaned_data["name"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


class ReasonForm(forms.Form):
    """Why a version is deprecated, retired, restored or made current."""

    reason = forms.CharField(max_length=REASON_MAX_LENGTH, required=False, strip=True)


class DescriptionForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A tool's description for people: owner, link, tags, notes and labels."""

    tags = SimpleArrayField(
        forms.CharField(max_length=_TAG_LENGTH), max_length=TAGS_MAX, required=False
    )
    link = forms.URLField(max_length=2000, required=False, assume_scheme="https")
    meta = DocumentField(required=False, label="Labels", rows=3)

    class Meta:
        model = Tool
        fields = ("owner", "link", "tags", "notes", "meta")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
        for name in ("notes", "meta"):
            self.fields[name].widget = forms.Textarea(attrs={"class": "form-control", "rows": 3})
        self.fields["tags"].help_text = "Separate tags with commas."
        self.fields["meta"].help_text = "A JSON object."
        self.fields["notes"].help_text = ""

    def clean_link(self) -> str:
        """A link that is safe in a page: http or https. Raises ValidationError."""
        link: str = self.cleaned_data["link"]
        if link and not link.startswith(("https://", "http://")):
            raise forms.ValidationError("Enter a URL that starts with https:// or http://.")
        return link

    def clean_tags(self) -> list[str]:
        """The tags without duplicates, in the typed order."""
        return list(dict.fromkeys(tag.strip() for tag in self.cleaned_data["tags"] if tag.strip()))

    def clean_meta(self) -> dict[str, Any]:
        """A JSON object within the limits of labels. Raises ValidationError."""
        meta = {} if self.cleaned_data["meta"] is None else self.cleaned_data["meta"]
        if not isinstance(meta, dict):
            raise forms.ValidationError("Enter a JSON object, such as {}.")
        try:
            return check_meta(meta)
        except ValueError as error:
            raise forms.ValidationError(f"The document {error}.") from None
