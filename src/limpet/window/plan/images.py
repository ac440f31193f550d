"""How large an image is, read from the first bytes of its file: PNG, GIF, JPEG and WebP."""

from __future__ import annotations

import base64
import binascii

_HEAD = 96 << 10  # characters of base64 that are looked at; a JPEG may have its size behind a long preview


def size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of an image given as base64, if its kind is known."""
    try:
        head = base64.b64decode(data[: _HEAD & ~3])
    except (binascii.Error, ValueError):
        return None
    found = None
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        found = _big(head, 16, 4), _big(head, 20, 4)
    elif head[:4] == b"GIF8" and len(head) >= 10:
        found = _little(head, 6, 2), _little(head, 8, 2)
    elif head[:2] == b"\xff\xd8":
        found = _jpeg(head)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        found = _webp(head)
    return found if found and all(found) else None


def _big(head: bytes, at: int, length: int) -> int:
    return int.from_bytes(head[at : at + length], "big")


def _little(head: bytes, at: int, length: int) -> int:
    return int.from_bytes(head[at : at + length], "little")


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Goes from segment to segment until the one that begins a frame, which holds the size."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head, at + 7, 2), _big(head, at + 5, 2)
        else:
            at += 2 + _big(head, at + 2, 2)
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    if head[12:16] == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    if head[12:16] == b"VP8L":
        bits = _little(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if head[12:16] == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    return None
