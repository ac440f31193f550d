"""Writing the journal: decisions, items, checkpoints, healing and rotation. Each is one change of the file.

What was added is also kept as an entry, so that outputs it cites are never pruned and searches find it; the file is
what counts.
"""

from __future__ import annotations

import os
from typing import NamedTuple, TypeVar

from limpet import errors, limits
from limpet.catalogue.check import bounded
from limpet.catalogue.operation import Context
from limpet.journal import beads
from limpet.journal import evidence as proof
from limpet.journal import file as files
from limpet.journal.document import edit, entries, removal, rotate
from limpet.journal.document.entries import Blocker, Debt, Decision, Identifier, Item, LogRow, Placed, rooted
from limpet.journal.document.markup import clean, one_line
from limpet.journal.document.merge import Conflict
from limpet.journal.document.quotes import MOVED, digest_of, lines_of
from limpet.journal.document.scan import Document, scan
from limpet.journal.document.sections import DEBT, template
from limpet.journal.read import Journal
from limpet.memory import handoff
from limpet.model import FILE, JOURNAL, Draft, moment
from limpet.store import Listing

DONE = "RESOLVED"
LISTED = 10  # blockers and goals each that a handoff names
T = TypeVar("T")


class Written(NamedTuple):
    """What a change of the journal did. `line` is where it stands; conflicts are with what people changed meanwhile."""

    file: str
    line: int
    id: str = ""
    moved: tuple[str, ...] = ()
    merged: bool = False
    conflicts: tuple[Conflict, ...] = ()
    hint: str = ""


class Checkpoint(NamedTuple):
    written: Written
    at: str
    blockers: tuple[str, ...]
    goals: tuple[str, ...]
    questions: tuple[str, ...]
    handoff: bool
    rotated: int


class Healed(NamedTuple):
    file: str
    state: str  # healthy, missing or empty
    source: str  # "", last seen, git or template
    written: bool


class Rotated(NamedTuple):
    file: str
    archive: str
    decisions: int
    rows: int


def journal_of(ctx: Context) -> Journal:
    return Journal(ctx.root, ctx.bounds.journal)


def stamp_of(ctx: Context) -> str:
    """Now, as the journal writes it."""
    return f"{moment(ctx.now):%Y-%m-%dT%H:%M:%SZ}"


def field(what: str, text: str | None, *, line: bool = False) -> str:
    """A text that may stand in an entry; "" where none was given."""
    if text is None:
        return ""
    kept = one_line(text) if line else clean(text)
    advice = "Keep the long part as an output or a file, and name it."
    return bounded(what, kept, limits.JOURNAL_FIELD_MAX_CHARS, advice, blank=f"Say the {what} in a sentence.")


def _write(ctx: Context, change: edit.Change, operation: str, *blocks: str) -> Written:
    """Put a change to the file and keep what it added: each of the blocks as an entry."""
    journal = journal_of(ctx)
    saved = files.update(journal.place, change, template)
    for block in blocks:
        _keep(ctx, block, journal.rules.file, operation)
    line = _first_change(saved.before, saved.text)
    return Written(journal.rules.file, line, merged=saved.merged, conflicts=saved.conflicts)


def _keep(ctx: Context, block: str, file: str, operation: str) -> None:
    draft = Draft(block, ctx.session, extra={"file": file})
    ctx.store.edit(ctx.scope, JOURNAL, None, lambda before: draft, ctx.stamp(operation))


def _first_change(before: str, after: str) -> int:
    """The number of the first line that is new."""
    old, new = before.split("\n"), after.split("\n")
    differing = (number for number, pair in enumerate(zip(old, new, strict=False), 1) if pair[0] != pair[1])
    return next(differing, len(old))


# --- decisions --------------------------------------------------------------------------------------------------------


def log_decision(
    ctx: Context, title: str, decision: str, rationale: str, evidence: tuple[str, ...], scenarios: tuple[str, ...]
) -> Written:
    if not evidence:
        raise errors.bad_evidence("", "none was given")
    kept = tuple(field("test scenario", one) for one in scenarios if one.strip())
    if len(kept) < limits.JOURNAL_SCENARIOS:
        raise errors.few_scenarios(len(kept), limits.JOURNAL_SCENARIOS)
    texts = field("title", title, line=True), field("decision", decision), field("rationale", rationale)
    proofs = [proof.given(ctx.root, item) for item in evidence]
    entry = Decision(stamp_of(ctx), *texts, tuple(one for one, _ in proofs), kept)
    block = edit.decision_block(entry, 4)
    written = _write(ctx, lambda text: edit.add_decision(text, entry), "log_decision", block)
    moved = tuple(str(one.ref) for one, state in proofs if state == MOVED)
    return written._replace(moved=moved)


# --- items ------------------------------------------------------------------------------------------------------------


def add(ctx: Context, section: str, text: str, given: dict[str, str]) -> Written:
    """Add to a section; `given` holds what else is said about it, by its name in update_notes."""
    words = field("text", text)
    note = field("note", given.get("note"), line=True)
    if section == "question":
        block = edit.item_block(Item(words))
        return _write(ctx, lambda text: edit.add_question(text, Item(words)), "update_notes", block)
    if section == "goal":
        waits = note if not note or note.lower().startswith(("blocking: ", "depends on: ")) else f"blocking: {note}"
        goal = Item(words, note=waits)
        return _write(ctx, lambda text: edit.add_goal(text, goal), "update_notes", edit.item_block(goal))
    if section == "blocker":
        eta = field("eta", given.get("eta"), line=True)
        blocker = Blocker("Waiting" if eta else "Blocked", words, eta)
        return _write(ctx, lambda text: edit.add_blocker(text, blocker), "update_notes", edit.blocker_block(blocker))
    if section == "debt":
        return _add_debt(ctx, words, given)
    if section == "identifier":
        return _add_identifier(ctx, one_line(words), note)
    names = edit.TASK if section == "task" else edit.STATE
    return _write(ctx, lambda text: edit.set_context(text, names, words), "update_notes", _field_block(names, words))


def _field_block(names: tuple[str, ...], value: str) -> str:
    return f"- **{names[0]}**: {value}\n"


def _add_debt(ctx: Context, words: str, given: dict[str, str]) -> Written:
    journal = journal_of(ctx)
    archive = files.read(journal.archive) or ""
    severity = given.get("severity", "MEDIUM")
    sprint = field("sprint", given.get("sprint"), line=True)
    made: list[Debt] = []

    def change(text: str) -> str:
        made[:] = [Debt(edit.next_debt_id(text, archive), words, severity, ctx.session, sprint)]
        return edit.add_debt(text, made[0])

    # The number is only known once the change was put to the file, so what is kept is written afterwards.
    saved = _write(ctx, change, "update_notes")
    debt = made[0]
    _keep(ctx, f"{debt.id}: {debt.description} ({debt.severity})", saved.file, "update_notes")
    hint = beads.track(ctx.root, debt) if given.get("track") else beads.offer(debt)
    return saved._replace(id=debt.id, hint=hint)


def _add_identifier(ctx: Context, place: str, purpose: str) -> Written:
    ref = entries.place_ref(place)
    inside = None if ref is None else rooted(ref, os.path.realpath(ctx.root))
    text = None if inside is None else proof.source(ctx.root, inside.path)
    if inside is None or text is None:
        raise errors.bad_evidence(place, "it names no readable file inside the project")
    entry = Identifier(str(inside), purpose, stamp_of(ctx))
    written = _write(ctx, lambda text: edit.add_identifier(text, entry), "update_notes", f"{entry.place}: {purpose}")
    side = journal_of(ctx).place
    proof.remember_verified(side, {**proof.verified(side), entry.place: digest_of(lines_of(text, inside))})
    return written


def finish(ctx: Context, section: str, text: str) -> Written:
    """Mark the one open entry of a section that holds the words as done."""
    wanted = one_line(field("text", text)).casefold()

    def change(journal: str) -> str:
        doc = scan(journal)
        if section == "blocker":
            blockers = [one for one in entries.blockers(doc) if not one.entry.resolved]
            return edit.resolve(journal, _only(section, text, wanted, [(one, one.entry.text) for one in blockers]))
        if section == "debt":
            debts = [one for one in entries.debts(doc) if one.entry.severity != DONE]
            found = _only(section, text, wanted, [(one, f"{one.entry.id} {one.entry.description}") for one in debts])
            return edit.set_cells(journal, DEBT, {found.start: {2: DONE}})
        items = entries.questions(doc) if section == "question" else entries.goals(doc)
        still_open = [one for one in items if not one.entry.done]
        return edit.tick(journal, _only(section, text, wanted, [(one, one.entry.text) for one in still_open]))

    return _write(ctx, change, "update_notes")


def _only(section: str, text: str, wanted: str, found: list[tuple[Placed[T], str]]) -> Placed[T]:
    exact = [one for one, words in found if one_line(words).casefold() == wanted]
    fitting = exact or [one for one, words in found if wanted in one_line(words).casefold()]
    if not fitting:
        raise errors.no_item(section, text)
    if len(fitting) > 1:
        raise errors.ambiguous_item(section, text, len(fitting))
    return fitting[0]


# --- duties -----------------------------------------------------------------------------------------------------------


def checkpoint(
    ctx: Context, summary: str, state: str | None, task: str | None, agent: str | None, line: str
) -> Checkpoint:
    """The end of a session, or the moment before its window is cut: the log, where it stands, and the handoff."""
    at, words = stamp_of(ctx), field("summary", summary)
    row = LogRow(at, field("agent", agent, line=True) or ctx.session, words)
    fields: list[tuple[tuple[str, ...], str]] = [(edit.CHECKPOINT, at)]
    if state is not None:
        fields.append((edit.STATE, field("state", state)))
    if task is not None:
        fields.append((edit.TASK, field("task", task)))

    def change(text: str) -> str:
        for names, value in fields:
            text = edit.set_context(text, names, value)
        return edit.add_log(text, row)

    told = [_field_block(*field) for field in fields[1:]]
    written = _write(ctx, change, "checkpoint_session", f"{at} {row.agent}: {words}", *told)
    doc = scan(journal_of(ctx).text())
    blocking = [one for one in entries.blockers(doc) if not one.entry.resolved]
    aims = [one for one in entries.goals(doc) if not one.entry.done]
    blockers, goals = tuple(one.entry.text for one in blocking), tuple(one.entry.text for one in aims)
    questions = tuple(one.entry.text for one in entries.questions(doc) if not one.entry.done)
    text = _handoff(words, state, blockers, goals, written.file)
    repeated = [*(one.start for one in blocking[:LISTED]), *(one.start for one in aims[:LISTED])]
    handoff.leave(ctx, text, line, _sources(ctx, doc, repeated))
    moved = rotate_when_long(ctx, force=False)
    return Checkpoint(written, at, blockers, goals, questions, True, moved.decisions + moved.rows)


def _sources(ctx: Context, doc: Document, starts: list[int]) -> tuple[str, ...]:
    """Whose words these lines of the file are: of whoever had them added here, else of somebody who edited it."""
    added = ctx.store.list(ctx.scope, Listing((JOURNAL,), limit=limits.LIST_MAX)).entries if starts else ()
    known = removal.authors(doc, [(entry.content, entry.origin) for entry in added])
    return tuple(known.get(start, FILE) for start in starts)


def _handoff(summary: str, state: str | None, blockers: tuple[str, ...], goals: tuple[str, ...], file: str) -> str:
    parts = [summary]
    if state:
        parts.append(f"Where it stands: {clean(state)}")
    for title, found in (("Blocked by", blockers), ("Not finished", goals)):
        if found:
            more = f"\n- and {len(found) - LISTED} more" if len(found) > LISTED else ""
            parts.append(f"{title}:\n" + "\n".join(f"- {one_line(one)}" for one in found[:LISTED]) + more)
    parts.append(f"More: recover_notes, or {file}.")
    return "\n\n".join(parts)[: limits.HANDOFF_MAX_CHARS]


def begin(ctx: Context) -> bool:
    """Make the journal from its template if there is none. Whether it was made."""
    return files.revive(journal_of(ctx).place, template()) if _state(ctx) != "healthy" else False


def heal(ctx: Context, check: bool) -> Healed:
    """Bring an empty or missing journal back: what was seen last, then what git has, then the template."""
    journal = journal_of(ctx)
    state = _state(ctx)
    if state == "healthy":
        return Healed(journal.rules.file, state, "", False)
    seen = next((text for text in files.states(journal.place) if text.strip()), "")
    committed = "" if seen else proof.committed(ctx.root, journal.rules.file) or ""
    source, text = "template", template()
    if seen:
        source, text = "last seen", seen
    elif committed.strip():
        source, text = "git", committed
    written = False if check else files.revive(journal.place, text)
    return Healed(journal.rules.file, state, source, written)


def _state(ctx: Context) -> str:
    text = files.read(journal_of(ctx).place)
    return "missing" if text is None else "healthy" if text.strip() else "empty"


def rotate_when_long(ctx: Context, *, force: bool) -> Rotated:
    """Move what is old to the archive. First it is there, then it is gone here: a crash in between loses nothing."""
    journal = journal_of(ctx)
    rules = journal.rules
    name = rotate.archive_name(rules.file)
    text = journal.text()
    if not force and len(text.encode("utf-8", "surrogateescape")) <= rules.rotate_bytes:
        return Rotated(rules.file, name, 0, 0)
    moved = rotate.choose(text, rules.keep_decisions, rules.keep_log_rows)
    if moved:
        files.update(journal.archive, lambda old: rotate.archived(old, moved), lambda: rotate.new_archive(rules.file))
        files.update(journal.place, lambda now: rotate.without(now, moved, name.rsplit("/", 1)[-1]))
    return Rotated(rules.file, name, len(moved.decisions), len(moved.rows))
