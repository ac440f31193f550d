"""Beads: a debt item becomes an issue if the `bd` command is installed. Without it the rest works as usual."""

from __future__ import annotations

import json
import shutil
import subprocess

from limpet.journal.document.entries import Debt
from limpet.journal.document.markup import one_line
from limpet.record import NamedTuple

_PRIORITY = {"CRITICAL": "0", "HIGH": "1", "MEDIUM": "2", "LOW": "3"}
_SECONDS = 10.0
_ISSUE_CHARS = 60
_TITLE = 200  # characters of an issue's title


def offer(debt: Debt) -> str:
    """What to do to track a debt item as an issue; "" where there is no `bd`."""
    return f"track: true makes {debt.id} an issue with bd." if shutil.which("bd") else ""


class Tracked(NamedTuple):
    issue: str  # its id; empty if there is none
    hint: str  # what happened, in a sentence


def track(root: str, debt: Debt) -> Tracked:
    """Create an issue for a debt item. The debt is written already, so a failure of `bd` is not an error."""
    command = shutil.which("bd")
    if command is None:
        return Tracked("", f"{debt.id} is in the journal only: the bd command is not on the PATH.")
    title = one_line(f"{debt.id}: {debt.description}")[:_TITLE]
    priority = _PRIORITY.get(debt.severity, "2")
    arguments = [command, "create", title, "--type", "task", "--priority", priority, "--labels", "debt", "--json"]
    try:
        done = subprocess.run(
            arguments, cwd=root, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        issue = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        issue = {}
    issue_id = issue.get("id") if isinstance(issue, dict) else None
    if not isinstance(issue_id, str) or not issue_id.isprintable() or not 0 < len(issue_id) <= _ISSUE_CHARS:
        return Tracked("", f"bd made no issue of {debt.id}; it is in the journal.")
    return Tracked(issue_id, f"{debt.id} is issue {issue_id}.")
