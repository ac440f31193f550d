"""What can go wrong with other tools' files, in sentences; the kinds of problems are in errors.py."""

from __future__ import annotations

from limpet.errors import BadInput, shown


def peer_not_readable(tool: str, path: str, why: str) -> BadInput:
    return BadInput(
        "peer_not_readable",
        f"{shown(path)} cannot be read as what {tool} keeps: {why}. Nothing was changed; name another place.",
    )


def peer_too_big(tool: str, path: str, size: int, limit: int) -> BadInput:
    return BadInput(
        "peer_too_big",
        f"{shown(path)} has {size:,} bytes; what {tool} keeps is read up to {limit:,}. Nothing was changed; split it.",
    )
