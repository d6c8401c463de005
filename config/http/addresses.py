"""Which addresses a server of ours may connect to: public ones, and those the operator allows."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from config.env import Opening

# `is_global` is true for some of these, or differs between versions of Python.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "100.64.0.0/10",  # carriers' NAT
        "168.63.129.16/32",  # Azure's host, from inside every machine there
        "192.88.99.0/24",  # relays of 6to4
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
"""All that is assigned for hosts. Outside are mapped, NAT64, private, link-local and multicast."""
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, among others: an IPv4 address inside
        "2001:db8::/32",
        "2002::/16",  # 6to4: likewise
        "3fff::/20",
        "5f00::/16",
    )
)


def may_connect(host: str, port: int, allowed: Iterable[Opening]) -> bool:
    """Whether one may connect there. `host` must be an address, not a name."""
    address = _address(host)  # a name would be resolved after this check
    return address is not None and (is_opened(host, port, allowed) or _is_public(address))


def is_opened(host: str, port: int, allowed: Iterable[Opening]) -> bool:
    """Whether the operator allows this address by name. `host` must be an address, not a name."""
    address = _address(host)
    return address is not None and any(
        address in opening.network and opening.port in (None, port)
        for opening in allowed
        if opening.network.version == address.version
    )


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if not address.is_global:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return (
        address.scope_id is None
        and address in _GLOBAL_V6
        and not any(address in network for network in _REFUSED_V6)
    )
