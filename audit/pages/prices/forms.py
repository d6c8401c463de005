"""The form of a price list: its day and currency, and a row for each price."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms
from django.forms.formsets import BaseFormSet

from audit.queries.price_lists import (
    MODEL_KINDS,
    PRICES_MAX,
    ModelPrice,
    PriceError,
    ToolPrice,
    model_document,
    plain,
    read_amount,
    read_unit_path,
)

_NEW_ROWS = 5
_TOOLS = "known-tools"


class ListForm(forms.Form):
    """From when on a list holds, and its currency."""

    holds_from = forms.DateField(
        label="Holds from",
        help_text="A day in UTC. The list holds until the day of the next one.",
        widget=forms.DateInput(attrs={"class": "form-control", "type": "date"}),
    )
    currency = forms.CharField(
        max_length=3,
        help_text="Three letters, such as EUR. All lists have the same.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )

    def clean_currency(self) -> str:
        """The currency in capital letters."""
        text: str = self.cleaned_data["currency"]
        return text.upper()


class PriceForm(forms.Form):
    """The price of a tool. A row without a tool is no price."""

    tool = forms.CharField(
        required=False,
        widget=forms.TextInput(
            attrs={"class": "form-control mono", "autocomplete": "off", "list": _TOOLS}
        ),
    )
    amount = forms.CharField(
        required=False,
        widget=forms.TextInput(
            attrs={"class": "form-control num", "autocomplete": "off", "inputmode": "decimal"}
        ),
    )
    path = forms.CharField(
        required=False,
        label="Units at",
        widget=forms.TextInput(
            attrs={"class": "form-control mono", "autocomplete": "off", "placeholder": "each call"}
        ),
    )

    def clean_amount(self) -> Decimal | None:
        """The amount, exact; None for an empty one."""
        text = self.cleaned_data["amount"]
        try:
            return read_amount(text) if text else None
        except PriceError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_path(self) -> str:
        """The path of units; '' if each call costs alike."""
        text = self.cleaned_data["path"]
        try:
            return read_unit_path(text) if text else ""
        except PriceError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Reject a price without an amount or without a tool."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("tool") and not self.errors and cleaned.get("amount") is None:
            self.add_error("amount", "Enter an amount, or empty the row.")
        if not cleaned.get("tool") and (cleaned.get("amount") is not None or cleaned.get("path")):
            self.add_error("tool", "Enter a tool, or empty the row.")
        return cleaned


_AMOUNT = {"class": "form-control num", "autocomplete": "off", "inputmode": "decimal"}


class ModelForm(forms.Form):
    """The prices of a model, for a million tokens of each kind. A row without a model is none."""

    model = forms.CharField(
        required=False,
        widget=forms.TextInput(
            attrs={"class": "form-control mono", "autocomplete": "off", "list": "known-models"}
        ),
    )
    input = forms.CharField(required=False, widget=forms.TextInput(attrs=_AMOUNT))
    cached = forms.CharField(
        required=False, widget=forms.TextInput(attrs=_AMOUNT | {"placeholder": "as input"})
    )
    written = forms.CharField(
        required=False, widget=forms.TextInput(attrs=_AMOUNT | {"placeholder": "as input"})
    )
    output = forms.CharField(required=False, widget=forms.TextInput(attrs=_AMOUNT))

    def clean(self) -> dict[str, Any]:
        """Read the amounts. Reject a model without input or output, and amounts without a model."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for kind in MODEL_KINDS:
            text = cleaned.get(kind)
            try:
                cleaned[kind] = read_amount(text) if text else None
            except PriceError as error:
                self.add_error(kind, str(error))
        for kind in ("input", "output"):
            if cleaned.get("model") and not self.errors and cleaned[kind] is None:
                self.add_error(kind, "Enter an amount, or empty the row.")
        if not cleaned.get("model") and any(cleaned.get(kind) is not None for kind in MODEL_KINDS):
            self.add_error("model", "Enter a model, or empty the row.")
        return cleaned


ModelRows = forms.formset_factory(
    ModelForm, extra=_NEW_ROWS, max_num=PRICES_MAX, absolute_max=PRICES_MAX
)
PriceRows = forms.formset_factory(
    PriceForm, extra=_NEW_ROWS, max_num=PRICES_MAX, absolute_max=PRICES_MAX
)


def price_rows(data: Any, prices: Sequence[ToolPrice]) -> "BaseFormSet[PriceForm]":
    """The rows of these prices, and some empty ones."""
    initial = [{"tool": one.tool, "amount": plain(one.amount), "path": one.path} for one in prices]
    # What is sent is read as it is: Django takes a row that equals its initial values for empty.
    return PriceRows(
        data,
        initial=None if data else initial,
        prefix="price",
        form_kwargs={"empty_permitted": False},
    )


def entered(form_rows: "BaseFormSet[PriceForm]") -> list[ToolPrice]:
    """The prices of valid rows."""
    return [
        ToolPrice(row.cleaned_data["tool"], row.cleaned_data["amount"], row.cleaned_data["path"])
        for row in form_rows
        if row.cleaned_data.get("tool")
    ]


def model_rows(data: Any, models: Sequence[ModelPrice]) -> "BaseFormSet[ModelForm]":
    """The rows of these models, and some empty ones."""
    return ModelRows(
        data,
        initial=None if data else [model_document(one) for one in models],
        prefix="model",
        form_kwargs={"empty_permitted": False},
    )


def entered_models(form_rows: "BaseFormSet[ModelForm]") -> list[ModelPrice]:
    """The prices of valid rows."""
    return [
        ModelPrice(
            row.cleaned_data["model"], **{kind: row.cleaned_data[kind] for kind in MODEL_KINDS}
        )
        for row in form_rows
        if row.cleaned_data.get("model")
    ]
