"""The journal of a project, and what a new session recovers from it. No store is opened, so that level 1 is quick."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from limpet import errors, limits
from limpet.journal import evidence as proof
from limpet.journal import file as files
from limpet.journal import state
from limpet.journal.document import edit, entries, recover
from limpet.journal.document.entries import Evidence
from limpet.journal.document.markup import JournalDocument, one_line, scan
from limpet.journal.document.quotes import FRESH, MOVED
from limpet.journal.document.recover import Recovered
from limpet.journal.file import JournalFile
from limpet.journal.state import StateFolder
from limpet.model import DataFolder, moment
from limpet.record import NamedTuple
from limpet.settings import JournalRules
from limpet.text import tokens

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context, Json

CHECKED = 5  # pieces of evidence of a decision that recovery checks
TOO_LONG = "{file} has {size:,} bytes, too many to read at every start; recover_journal reads it."


class Journal(NamedTuple):
    """Where a project's journal is, the rules for it, and the folder for what is known of its files."""

    root: str
    rules: JournalRules
    state: StateFolder

    @property
    def place(self) -> JournalFile:
        return files.find(self.root, self.rules.file, self.state)

    @property
    def archive(self) -> JournalFile:
        return files.find(self.root, edit.archive_name(self.rules.file), self.state)

    def text(self) -> str:
        content = files.read(self.place)
        if content is None:
            raise errors.journal_missing(self.rules.file)
        return content


def journal_of(ctx: Context) -> Journal:
    return in_project(ctx.root, ctx.bounds.journal, ctx.data)


def in_project(root: str, rules: JournalRules, data: DataFolder | None) -> Journal:
    """`data` is the project's folder in the person's data folder, where what is known of the journal belongs."""
    return Journal(root, rules, state.of_project(root) if data is None else state.in_data(data))


def stamp_of(ctx: Context) -> str:
    """Now, as the journal writes it."""
    return f"{moment(ctx.now):%Y-%m-%dT%H:%M:%SZ}"


def recovered(journal: Journal, level: int, query: str, now: datetime) -> Recovered:
    text = journal.text()
    archive = (files.read(journal.archive) or "") if level == 2 and query else ""
    budgets = journal.rules.level_1_tokens, journal.rules.level_2_tokens
    marks = {} if level == 3 else stale(journal, scan(text))
    return recover.recover(text, level, query=query, more=archive, budgets=budgets, marks=marks, now=now)


class OpenWork(NamedTuple):
    """What the work waits for, and what it has not reached yet."""

    blockers: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()


def open_work(ctx: Context) -> OpenWork:
    """The open blockers and goals of the journal; none if there is no journal."""
    doc = scan(files.read(journal_of(ctx).place) or "")
    blockers = tuple(one_line(item.entry.text) for item in entries.blockers(doc) if not item.entry.resolved)
    return OpenWork(blockers, tuple(one_line(item.entry.text) for item in entries.goals(doc) if not item.entry.done))


def at_start(ctx: Context) -> str:
    """Level 1 for the start of a session, which waits for nothing: a journal that is too long for that is named."""
    journal = journal_of(ctx)
    size = files.size(journal.place)
    if size > limits.JOURNAL_START_BYTES:
        return TOO_LONG.format(file=journal.rules.file, size=size)
    return recovered(journal, 1, "", moment(ctx.now)).text


def stale(journal: Journal, doc: JournalDocument) -> dict[int, str]:
    """What is wrong with the evidence of the last decisions, by position. git is not asked: this must be quick."""
    last = {past.place for past in recover.past_decisions(doc)[-recover.LAST :]}
    worst: dict[int, str] = {}
    for placed in entries.decisions(doc):
        if placed.start in last:
            checked = [item for item in placed.entry.evidence[:CHECKED] if _is_quick(journal, item)]
            verdicts = [proof.still(journal.root, item, ask_git=False) for item in checked]
            states = {verdict.state for verdict in verdicts if verdict is not None} - {FRESH, MOVED}
            if states:
                worst[placed.start] = sorted(states)[-1]
    return worst


def _is_quick(journal: Journal, item: Evidence) -> bool:
    return item.ref is None or proof.is_quick(journal.root, item.ref.path)


def recovered_text(_ctx: Context, value: Recovered) -> str:
    return value.text or "The journal is empty."


def recovered_json(value: Recovered) -> Json:
    return {
        "level": value.level,
        "text": value.text,
        "tokens": value.tokens,
        "tokenizer": tokens.NAME,
        "how": value.how,
    }
