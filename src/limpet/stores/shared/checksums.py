"""SHA-256 over stored data."""

from __future__ import annotations

from limpet.model import Entry, Scope
from limpet.platform import sha256


def checksum(content: bytes) -> bytes:
    return sha256(content).digest()


def fingerprint(scope: Scope, entry: Entry, tags: str, extra: str) -> bytes:
    """SHA-256 over every field. The content comes last, so no other field can run into it."""
    parts = (
        f"{scope.tenant}\x1f{scope.project}\x1f{entry.kind}\x1f{entry.key}\x1f{entry.session}\x1f{entry.origin}\x1f"
        f"{entry.version}\x1f{entry.created_at}\x1f{entry.updated_at}\x1f{entry.done:d}{entry.pinned:d}\x1f"
        f"{tags}\x1f{extra}\x1f{entry.content}"
    )
    return checksum(parts.encode())
