"""What can go wrong with coding agents' files, in sentences; the kinds of problems are in errors.py."""

from __future__ import annotations

from limpet.errors import BadInput, Conflict, NotFound, shown


def no_such_extra(client: str, name: str, scope: str) -> BadInput:
    return BadInput(
        "no_such_extra",
        f"{client} reads no {name} from the {'home folder' if scope == 'user' else 'project'}. Leave --{name} out, or "
        f"{'leave --user out' if scope == 'user' else 'add --user'}.",
    )


def plugin_installed(client: str) -> Conflict:
    return Conflict(
        "plugin_installed",
        f"{client} has Limpet as a plugin already, with its hooks and tools. Keep that, or first remove it with "
        "`claude plugin uninstall limpet@limpet`.",
    )


def not_a_transcript(path: str, why: str, known: list[str]) -> BadInput:
    return BadInput(
        "not_a_transcript",
        f"{shown(path)} holds no session of a coding agent: {why}. Name a session file, or one of: {', '.join(known)}.",
    )


def no_transcript(client: str, folder: str, advice: str) -> NotFound:
    return NotFound("no_transcript", f"{client} kept no session of {shown(folder)} that can be found. {advice}")
