"""Where a store is, for people to read."""

from __future__ import annotations

import os
import re

# Up to the last @: a password may hold one, and showing too little is the better mistake.
_PASSWORD = re.compile(r"(?<=://)([^:/?#@]*):.*@|(password=)[^&]*")


def file_of(store: str) -> str | None:
    """The absolute path of a store that is a file, None for a server's address."""
    path = store.removeprefix("sqlite://")
    return None if "://" in path else os.path.abspath(path)


def shown_place(store: str) -> str:
    """A store's place for people to see: without the password an address may hold."""
    return file_of(store) or _PASSWORD.sub(
        lambda found: f"{found[1]}:…@" if found[2] is None else f"{found[2]}…", store
    )
