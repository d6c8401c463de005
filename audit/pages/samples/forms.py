"""The forms of samples, for pages and the API."""

from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from tooltrail.evidence.sample.attributes import SIZE_MAX, Plan
from tooltrail.evidence.sample.selection import NONCE

from audit.models import Conclusion
from audit.sampling.working import TEXT_MAX, Judged

NAME_MAX = 100
REASON_MAX = 1_000
_CONTROL = {"class": "form-control", "autocomplete": "off"}
_MONO = {"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}


def _percent(label: str, initial: str, help_text: str = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=False,
        initial=Decimal(initial),
        min_value=Decimal(0),
        max_value=Decimal(100),
        decimal_places=2,
        help_text=help_text,
        widget=forms.NumberInput(attrs={**_CONTROL, "step": "0.01", "inputmode": "decimal"}),
    )


class SampleForm(forms.Form):
    """A new sample: of which calls, how many, and a commitment. `q` is read by the caller."""

    name = forms.CharField(
        max_length=NAME_MAX,
        help_text="For the working papers, such as: refunds, October.",
        widget=forms.TextInput(attrs=_CONTROL),
    )
    confidence = _percent("Confidence (%)", "95")
    tolerable = _percent("Tolerable rate of errors (%)", "5")
    expected = _percent("Expected rate of errors (%)", "0")
    size = forms.IntegerField(
        label="Or a number of calls",
        required=False,
        min_value=1,
        max_value=SIZE_MAX,
        help_text="Instead of the three rates.",
        widget=forms.NumberInput(attrs={**_CONTROL, "inputmode": "numeric"}),
    )
    commitment = forms.RegexField(
        NONCE,
        label="SHA-256 of your nonce",
        required=False,
        error_messages={"invalid": "A SHA-256 has 64 hexadecimal digits, in lower case."},
        help_text="Keep the nonce itself to yourself until the draw. Without it, the operator of"
        " this server could steer which calls are drawn, and the result says so.",
        widget=forms.TextInput(attrs=_MONO),
    )
    rates: ClassVar = ("confidence", "tolerable", "expected")

    def clean(self) -> dict[str, Any]:
        """Require a number, or three rates that make a plan."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors or cleaned["size"] is not None:
            return cleaned
        if any(cleaned[name] is None for name in self.rates):
            raise forms.ValidationError("Enter the three rates, or a number of calls.")
        if problem := self.plan_of(cleaned).problem:
            raise forms.ValidationError(problem)
        return cleaned

    @classmethod
    def plan_of(cls, cleaned: dict[str, Any]) -> Plan:
        """The rates in hundredths of a percent."""
        return Plan(*(int(cleaned[name] * 100) for name in cls.rates))

    @property
    def plan(self) -> Plan | None:
        """The plan; None if there is a number."""
        return None if self.cleaned_data["size"] else self.plan_of(self.cleaned_data)


class DrawForm(forms.Form):
    """The nonce that was committed to."""

    nonce = forms.RegexField(
        NONCE,
        required=False,
        error_messages={"invalid": "A nonce has 64 hexadecimal digits, in lower case."},
        widget=forms.TextInput(attrs=_MONO),
    )


class ConclusionForm(forms.Form):
    """What an auditor concludes about a call."""

    conclusion = forms.TypedChoiceField(
        choices=Conclusion.choices, coerce=Conclusion, widget=forms.RadioSelect
    )
    exception = forms.CharField(
        label="What does not conform",
        required=False,
        max_length=TEXT_MAX,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )
    note = forms.CharField(
        required=False,
        max_length=TEXT_MAX,
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )

    def clean(self) -> dict[str, Any]:
        """Require a description of an exception, and of nothing else."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        is_exception = cleaned.get("conclusion") == Conclusion.EXCEPTION
        if is_exception and not cleaned.get("exception"):
            self.add_error("exception", "Describe the exception.")
        if not is_exception and cleaned.get("exception"):
            self.add_error("exception", "Only an exception has this text. Use the note.")
        return cleaned

    @property
    def judged(self) -> Judged:
        """What was entered."""
        return Judged(**self.cleaned_data)


class ReturnForm(forms.Form):
    """Why a sample is returned to be worked again."""

    reason = forms.CharField(
        max_length=REASON_MAX,
        help_text="It becomes an entry of the ledger, which is never removed. Do not name persons.",
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 2}),
    )
