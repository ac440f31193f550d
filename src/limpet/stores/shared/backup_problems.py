"""The problems of whole.py: backups that cannot be used, and stores that are not empty. errors.py has the tree."""

from __future__ import annotations

from limpet.errors import BadInput, Conflict, StoreDamaged


def backup_unreadable(path: str, why: str) -> BadInput:
    return BadInput(
        "backup_unreadable",
        f"{path} cannot be read as a backup: {why}. Nothing was restored; name a file that `limpet backup` made.",
    )


def backup_damaged(path: str, what: str) -> StoreDamaged:
    return StoreDamaged(
        "backup_damaged",
        f"{path} is not as it was written: {what}. Nothing was restored; take another backup. "
        "What is whole in this one can be read where it is, with --store.",
    )


def store_not_empty(place: str) -> Conflict:
    return Conflict(
        "store_not_empty",
        f"{place} already holds something. Nothing was restored; a backup is put into an empty store (--store).",
    )
