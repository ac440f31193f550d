"""SHA-256 for what is stored, from whichever implementation is sooner done.

OpenSSL's is several times faster, but it lies in a library that takes two milliseconds to load: longer than all that a
hook has to hash. Python has one of its own, and for short texts it is fast enough.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

SHORT = 2_048  # bytes up to which Python's own is taken: some ten microseconds


def checksum(content: bytes) -> bytes:
    sha256 = _own() if len(content) <= SHORT else _openssl()
    return bytes(sha256(content).digest())


@lru_cache
def _own() -> Callable[[bytes], Any]:
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        with suppress(ImportError):
            own: Callable[[bytes], Any] = import_module(name).sha256
            return own
    return _openssl()


@lru_cache
def _openssl() -> Callable[[bytes], Any]:
    import hashlib

    return hashlib.sha256
