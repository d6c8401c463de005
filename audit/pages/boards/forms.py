"""What a board says, as a form with a row for each panel."""

from typing import Any

from django import forms
from pydantic import ValidationError

from audit.queries.boards import PANELS_MAX, THRESHOLD_MAX, BoardPage, Panel
from audit.queries.call_query import MAX_LENGTH
from audit.queries.saved_views import NAME_LENGTH
from audit.queries.time_range import DEFAULT, LENGTHS
from audit.show.boards import TITLES, problems_of

_TEXT = {"class": "form-control", "autocomplete": "off"}
_SELECT = {"class": "form-select"}
_RANGES = [(name, choice.label) for name, choice in LENGTHS.items()]
SIZES = (("third", "A third"), ("half", "Half"), ("wide", "Full width"))


class BoardForm(forms.Form):
    """Name, usual range, and whether all members see it."""

    name = forms.CharField(max_length=NAME_LENGTH, widget=forms.TextInput(attrs=_TEXT))
    range = forms.ChoiceField(choices=_RANGES, initial=DEFAULT, widget=forms.Select(attrs=_SELECT))
    is_shared = forms.BooleanField(required=False, label="Share with all members")

    def __init__(self, *args: Any, may_share: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        if not may_share:
            del self.fields["is_shared"]


class PanelForm(forms.Form):
    """A panel. It is left out if nothing is chosen."""

    shows = forms.ChoiceField(
        required=False,
        choices=[("", "nothing"), *TITLES.items()],
        widget=forms.Select(attrs=_SELECT),
    )
    title = forms.CharField(
        required=False, max_length=NAME_LENGTH, widget=forms.TextInput(attrs=_TEXT)
    )
    q = forms.CharField(
        label="Query",
        required=False,
        max_length=MAX_LENGTH,
        widget=forms.TextInput(
            attrs={
                "class": "form-control mono",
                "autocomplete": "off",
                "spellcheck": "false",
                "list": "views",
                "placeholder": "all calls",
            }
        ),
    )
    size = forms.ChoiceField(choices=SIZES, initial="half", widget=forms.Select(attrs=_SELECT))
    threshold = forms.CharField(
        required=False,
        max_length=THRESHOLD_MAX,
        widget=forms.TextInput(attrs={**_TEXT, "placeholder": "5 %, 2 s, 100"}),
    )


class _Rows(forms.BaseFormSet):  # type: ignore[type-arg]  # not generic at run time
    ordering_widget = forms.NumberInput(attrs=_TEXT)  # type: ignore[assignment]  # Django takes both


PanelForms = forms.formset_factory(
    PanelForm,
    formset=_Rows,
    extra=2,
    max_num=PANELS_MAX,
    absolute_max=PANELS_MAX,
    can_order=True,
)


def read_page(form: BoardForm, panels: Any) -> BoardPage | None:
    """The board that both forms say; None if it is invalid, and then the forms say why."""
    if not (form.is_valid() and panels.is_valid()):
        return None
    chosen = sorted(
        (one for one in panels.cleaned_data if one.get("shows")),
        key=lambda one: (one.get("ORDER") is None, one.get("ORDER") or 0),
    )
    chosen_panels: list[Panel] = []
    for number, one in enumerate(chosen, start=1):
        try:
            chosen_panels.append(
                Panel.model_validate({name: one[name] for name in Panel.model_fields})
            )
        except ValidationError as error:
            form.add_error(None, f"Panel {number}: {message_of(error)}")
    if form.errors:
        return None
    try:
        page = BoardPage(
            name=form.cleaned_data["name"],
            range=form.cleaned_data["range"],
            panels=tuple(chosen_panels),
        )
    except ValidationError as error:
        form.add_error(None, message_of(error))
        return None
    for problem in problems_of(page):
        form.add_error(None, problem)
    return None if form.errors else page


def message_of(error: ValidationError) -> str:
    """The first problem of a board, in words."""
    return error.errors()[0]["msg"].removeprefix("Value error, ")
