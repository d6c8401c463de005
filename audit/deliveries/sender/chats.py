"""Other services, by a URL of apprise: chats, pagers and push messages. Needs the extra `apprise`.

Only these are offered: they send with Python's sockets, so that the guard sees each connection
(`tests/audit/deliveries/test_chats.py` tries all of them), and they need nothing of this machine.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from audit.deliveries.sender.job import Answer, Job
from audit.deliveries.sender.texts import plain

if TYPE_CHECKING:
    from apprise import NotifyBase


@dataclass(frozen=True, slots=True)
class Service:
    """A service: its name, and the class of apprise that sends to it."""

    name: str
    module: str
    plugin: str


_GOTIFY = Service("Gotify", "gotify", "NotifyGotify")
_MATRIX = Service("Matrix", "matrix.base", "NotifyMatrix")
_MATTERMOST = Service("Mattermost", "mattermost", "NotifyMattermost")
_NTFY = Service("ntfy", "ntfy", "NotifyNtfy")
OFFERED: Mapping[str, Service] = {
    "betterstack": Service("Better Stack", "betterstack", "NotifyBetterStack"),
    "discord": Service("Discord", "discord", "NotifyDiscord"),
    "gchat": Service("Google Chat", "google_chat", "NotifyGoogleChat"),
    "gotify": _GOTIFY,
    "gotifys": _GOTIFY,
    "guilded": Service("Guilded", "guilded", "NotifyGuilded"),
    "ilert": Service("ilert", "ilert", "NotifyILert"),
    "matrix": _MATRIX,
    "matrixs": _MATRIX,
    "mmost": _MATTERMOST,
    "mmosts": _MATTERMOST,
    "ntfy": _NTFY,
    "ntfys": _NTFY,
    "pagerduty": Service("PagerDuty", "pagerduty", "NotifyPagerDuty"),
    "pover": Service("Pushover", "pushover", "NotifyPushover"),
    "signl4": Service("SIGNL4", "signl4", "NotifySIGNL4"),
    "splunk": Service("Splunk On-Call", "splunk", "NotifySplunk"),
    "squadcast": Service("Squadcast", "squadcast", "NotifySquadcast"),
    "tgram": Service("Telegram", "telegram", "NotifyTelegram"),
    "webex": Service("Webex", "webexteams", "NotifyWebexTeams"),
    "workflows": Service("Microsoft Teams", "workflows", "NotifyWorkflows"),
    "zulip": Service("Zulip", "zulip", "NotifyZulip"),
}
"""The services by the scheme of their URLs."""
_TYPES = {"fired": "failure", "repeated": "failure", "resolved": "success", "test": "info"}


def is_installed() -> bool:
    """Whether the extra is installed."""
    return find_spec("apprise") is not None


def send(job: Job) -> Answer:
    """Send a message. Raises ValueError for a URL that cannot be used."""
    plugin = _plugin(job.secrets["url"])
    plugin.socket_connect_timeout = plugin.socket_read_timeout = job.timeout_s
    with _Warnings() as warnings:
        is_delivered = plugin.notify(
            body=plain(job.message),
            title=job.message["title"],
            notify_type=_TYPES.get(job.message["kind"], "warning"),
            body_format="text",
        )
    text = "Accepted." if is_delivered else warnings.last or "The service did not accept it."
    return Answer(job.id, bool(is_delivered), text)


def check(job: Job) -> Answer:
    """Check a URL without sending. The answer's text is the URL without its secrets."""
    plugin = _plugin(job.secrets["url"])
    return Answer(job.id, is_delivered=True, text=plugin.url(privacy=True).partition("?")[0])


def _plugin(url: str) -> "NotifyBase":
    scheme = url.partition("://")[0].lower()
    if scheme not in OFFERED:
        raise ValueError(f"The URL must begin with one of {', '.join(OFFERED)}, and ://.")
    if not is_installed():
        raise ValueError("The extra apprise is not installed on this server.")
    from apprise import AppriseAsset

    service = OFFERED[scheme]
    # Not through `Apprise`, which loads all its 180 services: 5 s.
    made = getattr(import_module(f"apprise.plugins.{service.module}"), service.plugin)
    try:
        parsed = made.parse_url(url)
        asset = AppriseAsset(plugin_paths=[], storage_mode="memory", async_mode=False)
        plugin: NotifyBase = made(**parsed, asset=asset)
    except (TypeError, ValueError):  # both are raised for URLs that lack something
        raise ValueError(f"This is not a URL of {service.name}.") from None
    if not plugin.verify_certificate:
        raise ValueError("Certificates are always verified: leave out verify=no.")
    return plugin


class _Warnings(logging.Handler):
    """Keeps the last warning of this thread: apprise says only there why it failed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        self._thread = threading.get_ident()
        self._logger = logging.getLogger("apprise")

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.last = record.getMessage()

    def __enter__(self) -> "_Warnings":
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: Any) -> None:
        self._logger.removeHandler(self)
