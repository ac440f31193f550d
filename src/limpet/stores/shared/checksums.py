"""SHA-256 over stored data, by the implementation that is faster for the size.

OpenSSL's is several times faster, but loading its library takes two milliseconds: longer than a hook needs to hash
everything it writes. Python's own implementation is fast enough for short texts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

from limpet.model import Entry, Scope

SHORT = 2_048  # bytes up to which Python's own implementation is used: about ten microseconds


def checksum(content: bytes) -> bytes:
    sha256 = _builtin() if len(content) <= SHORT else openssl()
    return bytes(sha256(content).digest())


@lru_cache
def _builtin() -> Callable[[bytes], Any]:
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        with suppress(ImportError):
            builtin: Callable[[bytes], Any] = import_module(name).sha256
            return builtin
    return openssl()


@lru_cache
def openssl() -> Callable[[bytes], Any]:
    sha256: Callable[[bytes], Any] = import_module("hashlib").sha256  # imported late: see above
    return sha256


def fingerprint(scope: Scope, entry: Entry, tags: str, extra: str) -> bytes:
    """SHA-256 over every field. The content comes last, so no other field can run into it."""
    parts = (
        f"{scope.tenant}\x1f{scope.project}\x1f{entry.kind}\x1f{entry.key}\x1f{entry.session}\x1f{entry.origin}\x1f"
        f"{entry.version}\x1f{entry.created_at}\x1f{entry.updated_at}\x1f{entry.done:d}{entry.pinned:d}\x1f"
        f"{tags}\x1f{extra}\x1f{entry.content}"
    )
    return checksum(parts.encode())
