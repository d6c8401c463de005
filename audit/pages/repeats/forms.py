"""The form that marks a tool as polling."""

from django import forms

from audit.queries import polling


class PollingToolForm(forms.Form):
    """The name of a polling tool, exactly as executors write it."""

    tool = forms.CharField(max_length=polling.NAME_LENGTH, strip=False)
