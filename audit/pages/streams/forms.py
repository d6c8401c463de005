"""Forms of streams, one for each way. The rules are in `audit.stream.addressing`."""

from typing import Any, ClassVar

from django import forms

from audit.models import Stream, StreamFormat, StreamOf, StreamWay
from audit.stream.addressing import CA_MAX, KEY_MAX, SECRETS, TEXT_MAX
from audit.stream.streams import Wanted

_KEPT = "Leave empty to keep the present one."
_BEGINS = {"now": "With what arrives from now on", "all": "With the first entry of the ledger"}


def _line(label: str, **options: Any) -> forms.CharField:
    attributes = {"class": "form-control", "autocomplete": "off"}
    return forms.CharField(
        label=label, max_length=TEXT_MAX, widget=forms.TextInput(attrs=attributes), **options
    )


def _secret(label: str, **options: Any) -> forms.CharField:
    """A field that is never filled in: what is stored is not shown again."""
    attributes = {"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"}
    widget = forms.PasswordInput(attrs=attributes)
    return forms.CharField(
        label=label, max_length=TEXT_MAX, required=False, widget=widget, **options
    )


class _UnseenText(forms.Textarea):
    """Lines that are never filled in, also not with what was just entered."""

    def format_value(self, value: Any) -> str | None:
        return None


def _pem(label: str, max_length: int, widget: type[forms.Textarea], help_text: str) -> Any:
    attributes = {"class": "form-control mono", "rows": 3, "spellcheck": "false"}
    return forms.CharField(
        label=label,
        max_length=max_length,
        required=False,
        strip=False,
        help_text=help_text,
        widget=widget(attrs={**attributes, "autocomplete": "off"}),
    )


def _choice(label: str, choices: Any, **options: Any) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=label,
        choices=choices,
        widget=forms.Select(attrs={"class": "form-select"}),
        **options,
    )


class StreamForm(forms.Form):
    """What a stream has, its format, and below it the settings of its way."""

    name = _line("Name")
    of = _choice("What is sent", StreamOf.choices)
    format = _choice("Format", StreamFormat.choices)
    has_proofs = forms.BooleanField(
        label="Each record has its whole proof",
        required=False,
        initial=True,
        help_text="About 1.3 KB a record. Without it, a record names the checkpoint, and"
        " <code>tooltrail verify-record</code> asks this server or an evidence bundle.",
    )
    begin = _choice("It begins", list(_BEGINS.items()), required=False)
    ca = _pem(
        "Certificates of the receiver's authority",
        CA_MAX,
        forms.Textarea,
        "In PEM, beside those of the system. Only needed for a private authority.",
    )

    own: ClassVar[tuple[str, ...]] = ()
    """The fields of the way, in their order."""

    @property
    def own_fields(self) -> list[forms.BoundField]:
        """The fields of the way."""
        return [self[name] for name in self.own]

    def wanted(self, way: StreamWay) -> Wanted:
        """What was entered."""
        cleaned = self.cleaned_data
        return Wanted(
            cleaned["name"],
            StreamOf(cleaned["of"]),
            StreamFormat(cleaned["format"]),
            way,
            {name: cleaned[name] for name in (*self.own, "ca")},
            cleaned["has_proofs"],
        )


class SyslogForm(StreamForm):
    """A syslog server that speaks TLS."""

    own = ("host", "port", "certificate", "key")
    host = _line("Syslog server", help_text="It must take RFC 5425: syslog over TLS.")
    port = forms.IntegerField(
        min_value=1,
        max_value=65_535,
        initial=6514,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )
    certificate = _pem(
        "Client certificate",
        CA_MAX,
        forms.Textarea,
        "In PEM, with those between it and its authority. Only for a server that asks for one.",
    )
    key = _pem(
        "Private key of the client certificate",
        KEY_MAX,
        _UnseenText,
        "In PEM, without a passphrase.",
    )


class HttpsForm(StreamForm):
    """A URL that takes JSON lines."""

    own = ("url", "authorization")
    url = _line("URL", help_text="It gets POST requests of JSON lines; 2xx means that it has them.")
    authorization = _secret("Authorization", help_text="The header's value, such as Bearer ….")


class SplunkForm(StreamForm):
    """Splunk's HTTP Event Collector."""

    own = ("url", "token", "index", "has_acks")
    url = _line("Collector", help_text="Without a path, such as https://splunk.example:8088.")
    token = _secret("Token")
    index = _line("Index", required=False, help_text="Empty: the token's default.")
    has_acks = forms.BooleanField(
        label="The indexer acknowledges",
        required=False,
        help_text="Switch this on if the token has indexer acknowledgement: then nothing counts as"
        " sent before it is written.",
    )


class S3Form(StreamForm):
    """A bucket."""

    own = ("endpoint", "region", "bucket", "folder", "access_key", "secret_key")
    endpoint = _line("Endpoint", help_text="Such as https://s3.eu-central-1.amazonaws.com.")
    region = _line("Region", required=False, initial="us-east-1")
    bucket = _line("Bucket")
    folder = _line("Folder", required=False)
    access_key = _line("Access key")
    secret_key = _secret("Secret key")


_FORMS: dict[str, type[StreamForm]] = {
    StreamWay.SYSLOG: SyslogForm,
    StreamWay.HTTPS: HttpsForm,
    StreamWay.SPLUNK: SplunkForm,
    StreamWay.S3: S3Form,
}


def form_for_new(way: StreamWay, data: Any) -> StreamForm:
    """The form of a new stream."""
    return _FORMS[way](data)


def form_of(stream: Stream, data: Any) -> StreamForm:
    """The form of a stream with what may be shown of it."""
    initial = {
        **stream.settings,
        **{name: getattr(stream, name) for name in ("name", "of", "format", "has_proofs")},
    }
    form = _FORMS[stream.way](data, initial=initial)
    form.fields["of"].disabled = True
    del form.fields["begin"]
    if stream.secret_box is not None:
        form.fields[SECRETS[stream.way]].help_text = _KEPT
    return form


class ReplayForm(forms.Form):
    """From where a stream is sent again."""

    index = forms.IntegerField(min_value=0, max_value=2**62)
