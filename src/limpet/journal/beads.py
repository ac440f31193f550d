"""Beads: a debt item becomes an issue if the `bd` command is installed. Without it the rest works as usual."""

from __future__ import annotations

import json
import shutil
import subprocess

from limpet.journal.document.entries import Debt
from limpet.journal.document.markup import one_line

_PRIORITY = {"CRITICAL": "0", "HIGH": "1", "MEDIUM": "2", "LOW": "3"}
_SECONDS = 10.0
_TITLE = 200  # characters of an issue's title


def offer(debt: Debt) -> str:
    """What to do to track a debt item as an issue; "" where there is no `bd`."""
    return f"track: true makes {debt.id} an issue with bd." if shutil.which("bd") else ""


def track(root: str, debt: Debt) -> str:
    """Create an issue for a debt item, and say in a sentence what happened.

    The debt is written already, so a failure of `bd` is not an error.
    """
    command = shutil.which("bd")
    if command is None:
        return f"{debt.id} is in the journal only: the bd command is not on the PATH."
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
    return f"{debt.id} is issue {issue_id}." if issue_id else f"bd made no issue of {debt.id}; it is in the journal."
