"""The form of a polling tool."""

from django import forms

from audit.queries import polling


class PollingToolForm(forms.Form):
    """A tool that polls, exactly as executors name it."""

    tool = forms.CharField(max_length=polling.NAME_LENGTH, strip=False)
