"""A process of its own that writes to a store. Run by test_concurrency.py; waits for a line on its standard input."""

from __future__ import annotations

import sys

from limpet.model import MEMORY, NOTE, Draft, Entry, Scope, Stamp
from limpet.wiring import choose_store


def count_on(before: Entry | None) -> Draft:
    return Draft(str(int(before.content if before else "0") + 1))


def main(url: str, scope: Scope, name: str, edits: int) -> None:
    # Only what it needs is imported, so that eight of these start quickly.
    print("ready", flush=True)
    sys.stdin.readline()
    store = choose_store(url)
    stamp, note = Stamp("agent/test", "test", name, 1_000), Draft(f"by {name}", name, ("Tag",))
    for _ in range(edits):
        store.entries.edit(scope, MEMORY, "counter", count_on, stamp)
        change = store.entries.edit(scope, NOTE, None, lambda before: note, stamp)
        print(change.after.key if change.after else "", flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], Scope(sys.argv[2], sys.argv[3]), sys.argv[4], int(sys.argv[5]))
