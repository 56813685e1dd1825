"""Numbers with units: 4.2 M operations, 64 MiB, 8,192 tokens."""

from __future__ import annotations

_SI = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def si(number: float) -> str:
    """A number in thousands.

    >>> si(0), si(999), si(4_200_000), si(1e12), si(0.25)
    ('0', '999', '4.2 M', '1 T', '0.25')
    """
    return _scaled(number, 1000, _SI)


def binary(number: float) -> str:
    """Bytes in units of 1,024.

    >>> binary(512), binary(65536), binary(1.5 * 2**30), binary(2**20)
    ('512 B', '64 KiB', '1.5 GiB', '1 MiB')
    """
    return _scaled(number, 1024, _BINARY)


def _scaled(number: float, base: int, names: tuple[str, ...]) -> str:
    size, place = float(number), 0
    # 999.6 would be written as 1000 of the smaller unit.
    while abs(size) >= base - 0.5 and place < len(names) - 1:
        size, place = size / base, place + 1
    shown = f"{size:.3g}" if abs(size) < 1000 else f"{size:,.0f}"
    return f"{shown} {names[place]}".strip().replace("-", "−")
