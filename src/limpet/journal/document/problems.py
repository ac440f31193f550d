"""What can go wrong with the journal, as errors.py does it: what happened, the value, the rule and the next step."""

from __future__ import annotations

from limpet.errors import BadInput, Conflict, NotFound, StoreBusy, StoreReadOnly, shown


def journal_missing(name: str) -> NotFound:
    return NotFound(
        "journal_missing",
        f"{name} is not there. `limpet journal heal` brings it back or makes a new one. Nothing was written.",
    )


def journal_emptied(name: str) -> Conflict:
    return Conflict(
        "journal_emptied",
        f"{name} is empty, though it was not before. Nothing was written; `limpet journal heal` brings it back.",
    )


def journal_outside(name: str) -> BadInput:
    return BadInput(
        "journal_outside",
        f"{shown(name)} lies outside the project, itself or by a link. It was left alone; "
        f"choose a file inside with LIMPET_JOURNAL_FILE.",
    )


def journal_not_a_file(name: str) -> BadInput:
    return BadInput("journal_not_a_file", f"{name} is not a regular file. Move it away, then call again.")


def journal_too_big(name: str, got: int, limit: int) -> BadInput:
    return BadInput(
        "journal_too_big", f"{name} has {got:,} bytes; the limit is {limit:,}. Move what is old to another file."
    )


def journal_unwritable(name: str, why: str) -> StoreReadOnly:
    return StoreReadOnly(
        "journal_unwritable", f"{name} cannot be read or written: {why}. Nothing was changed; see to its permissions."
    )


def journal_stays(seq: int) -> BadInput:
    return BadInput(
        "journal_stays",
        f"change {seq} was made in the journal's file and cannot be undone here. Edit the file, or use git.",
    )


def bad_evidence(item: str, why: str) -> BadInput:
    return BadInput(
        "bad_evidence",
        f"the evidence {shown(item)} cannot be used: {why}. Give path:line or path:first-last inside the project, "
        f"with a word-for-word quote behind it if you like, or user: and what they said. Nothing was written.",
    )


def few_scenarios(got: int, wanted: int) -> BadInput:
    return BadInput(
        "few_scenarios",
        f"{got} test scenarios were given; a decision needs {wanted}: the usual case, an edge, a failure. Add them.",
    )


def no_item(section: str, text: str) -> NotFound:
    return NotFound(
        "no_item", f"no open {section} in the journal holds {shown(text)}. recover_notes with level 3 shows them all."
    )


def ambiguous_item(section: str, text: str, count: int) -> BadInput:
    return BadInput(
        "ambiguous_item",
        f"{count} open entries of {section} hold {shown(text)}. Give more of the words of the one meant.",
    )


def journal_busy(name: str, seconds: float) -> StoreBusy:
    return StoreBusy(
        "journal_busy",
        f"another process has kept the lock of {name} for {seconds:.0f} seconds. Nothing was changed; call again.",
    )
