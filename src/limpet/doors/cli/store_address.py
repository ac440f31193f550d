"""Where a store is, in a form to show to people."""

from __future__ import annotations

import os
import re

# Up to the last @: a password may hold one, and showing too little is the better mistake.
_PASSWORD = re.compile(r"(?<=://)([^:/?#@]*):.*@|(password=)[^&]*")


def file_of(store: str) -> str | None:
    """The absolute path of a store that is a file, None for a server's address."""
    path = store.removeprefix("sqlite://")
    return None if "://" in path else os.path.abspath(path)


def exists(store: str) -> bool:
    """Whether a store that is a file exists. A server is assumed to exist; whether it answers is seen later."""
    path = file_of(store)
    return path is None or os.path.lexists(path)


def shown_place(store: str) -> str:
    """A store's address without the password it may hold."""
    return file_of(store) or _PASSWORD.sub(
        lambda match: f"{match[1]}:…@" if match[2] is None else f"{match[2]}…", store
    )
