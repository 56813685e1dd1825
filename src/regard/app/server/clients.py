"""What counts as one client, for shares and limits: an IP address.

Cookies or names chosen by the client would limit nothing, because anyone can send new ones. All tabs and
programs of one machine share the limits of one client. Of an IPv6 address only the first half counts,
because one machine usually owns the whole second half.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any


def client_of(scope: Mapping[str, Any]) -> str:
    """The client of a request.

    >>> client_of({"client": ("127.0.0.1", 51234)}), client_of({"client": None})
    ('127.0.0.1', '')
    """
    found = scope.get("client")
    return client_at(found[0] if found else None)


def client_at(address: str | None) -> str:
    """The client at an address.

    >>> client_at("2001:db8:1:2:3:4:5:6"), client_at("::ffff:10.0.0.7")
    ('2001:db8:1:2::', '10.0.0.7')
    """
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)).network_address)
