"""Forms of channels, one for each kind. The rules are in `audit.deliveries.addressing`."""

from typing import Any

from django import forms

from audit.deliveries.addressing import SECURITIES, URL_MAX, Given, new_secret
from audit.deliveries.channels import NAME_MAX
from audit.models import AlertChannel, ChannelKind

_KEPT = "Leave empty to keep the present one."


def _line(label: str, **options: Any) -> forms.CharField:
    attributes = {"class": "form-control", "autocomplete": "off"}
    return forms.CharField(
        label=label, max_length=URL_MAX, widget=forms.TextInput(attrs=attributes), **options
    )


def _secret(label: str, **options: Any) -> forms.CharField:
    """A field that is never filled in: what is stored is not shown again."""
    attributes = {"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}
    widget = forms.PasswordInput(attrs=attributes)
    return forms.CharField(
        label=label, max_length=URL_MAX, required=False, widget=widget, **options
    )


class ChannelForm(forms.Form):
    """The name of a channel, and below it the settings of its kind."""

    name = forms.CharField(
        max_length=NAME_MAX,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )

    @property
    def given(self) -> Given:
        """What was entered, as `audit.deliveries.addressing` reads it."""
        return {name: value for name, value in self.cleaned_data.items() if name != "name"}


class EmailForm(ChannelForm):
    """A mail server, and to whom it sends."""

    recipients = forms.CharField(
        widget=forms.Textarea(attrs={"class": "form-control", "rows": 3}),
        help_text="One address a line.",
    )
    sender = _line("From")
    host = _line("Mail server")
    port = forms.IntegerField(
        min_value=1,
        max_value=65_535,
        initial=587,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    security = forms.ChoiceField(
        label="Encryption",
        choices=list(SECURITIES.items()),
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    username = _line("User", required=False)
    password = _secret("Password")

    def clean_recipients(self) -> list[str]:
        """The addresses, as a list."""
        text: str = self.cleaned_data["recipients"]
        return text.replace(",", " ").split()


class WebhookForm(ChannelForm):
    """A URL, and the secret of its signatures."""

    url = _line(
        "URL", help_text="It is called with POST. Use https://, so that nobody can read it."
    )
    secret = _secret(
        "Signing secret",
        help_text="Of the form <code>whsec_…</code>. Leave empty for a new one.",
    )


class WebhookChangeForm(WebhookForm):
    """The same for a channel that has a secret."""

    secret = _secret("Signing secret", help_text=_KEPT)
    is_replaced = forms.BooleanField(label="Replace the secret with a new one", required=False)

    @property
    def given(self) -> Given:
        """With a new secret, if that was chosen."""
        cleaned = self.cleaned_data
        return {
            "url": cleaned["url"],
            "secret": new_secret() if cleaned["is_replaced"] else cleaned["secret"],
        }


class SlackForm(ChannelForm):
    """The URL of an incoming webhook, which is a secret."""

    url = _secret(
        "Webhook URL",
        help_text="Of an incoming webhook of Slack, or of a chat that is compatible, such as"
        " Mattermost. It is not shown again.",
    )


class ServiceForm(ChannelForm):
    """A URL of apprise, which contains secrets."""

    url = _secret(
        "Service URL",
        help_text="As apprise writes it, for example <code>tgram://token/chat</code>. It is not"
        " shown again.",
    )


_FORMS: dict[str, type[ChannelForm]] = {
    ChannelKind.EMAIL: EmailForm,
    ChannelKind.WEBHOOK: WebhookForm,
    ChannelKind.SLACK: SlackForm,
    ChannelKind.SERVICE: ServiceForm,
}


def form_for_new(kind: ChannelKind, data: Any) -> ChannelForm:
    """The form of a new channel."""
    return _FORMS[kind](data)


def form_of(channel: AlertChannel, data: Any) -> ChannelForm:
    """The form of a channel with what may be shown of it."""
    initial = {**channel.settings, "name": channel.name}
    if channel.kind == ChannelKind.WEBHOOK:
        return WebhookChangeForm(data, initial=initial)
    if channel.kind == ChannelKind.EMAIL:
        initial["recipients"] = "\n".join(channel.settings["recipients"])
    form = _FORMS[channel.kind](data, initial=initial)
    for name in ("password", "url"):
        if name in form.fields:
            form.fields[name].help_text = _KEPT
    return form
