"""The methods of `session.journal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from limpet.catalogue.operation import Caller
from limpet.journal import clearing, write
from limpet.journal.check import Linted, Verified, lint_journal, verify_journal
from limpet.journal.document.recover import Recovered


class ProjectJournal:
    """`session.journal`: the project's NOTES.md, shared with people."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def recover(self, level: int = 1, query: str = "") -> Recovered:
        """What to take up: 1 the current state and the last decisions, 2 more or an answer, 3 all of it."""
        return self._session.do(write.recover_journal, level=level, query=query)

    def log_decision(
        self, title: str, decision: str, rationale: str, *, evidence: Sequence[str], scenarios: Sequence[str]
    ) -> write.Written:
        return self._session.do(
            write.log_decision,
            title=title,
            decision=decision,
            rationale=rationale,
            evidence=evidence,
            scenarios=scenarios,
        )

    def add(self, section: str, text: str, **more: Any) -> write.Written:
        """Add a question, goal, debt, blocker or identifier, or set the task or the state."""
        return self._session.do(write.update_journal, section=section, text=text, **more)

    def done(self, section: str, text: str) -> write.Written:
        """Mark the open question, goal, debt or blocker that holds these words as done."""
        return self.add(section, text, done=True)

    def checkpoint(self, summary: str, **more: Any) -> write.Checkpoint:
        """Log what was done, set the state (`state=`, `task=`), leave the handoff, and return what is still open."""
        return self._session.do(write.checkpoint_session, summary=summary, **more)

    def init(self) -> bool:
        return self._session.do(write.init_journal)

    def lint(self, *, fix: bool = False) -> Linted:
        return self._session.do(lint_journal, fix=fix)

    def heal(self, *, check: bool = False) -> write.Healed:
        return self._session.do(write.heal_journal, check=check)

    def verify(self, *, check: bool = False, fix: bool = False) -> Verified:
        return self._session.do(verify_journal, check=check, fix=fix)

    def rotate(self, *, force: bool = False) -> write.Rotated:
        return self._session.do(write.rotate_journal, force=force)

    def clear(self, tool: str, content: str) -> clearing.Cleared | None:
        """The one line for a tool's result whose findings are noted, with the way back to the result. None: keep it."""
        return clearing.clear_result(self._session.ctx(), tool, content)
