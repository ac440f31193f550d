"""Writing the journal: decisions, items, checkpoints, healing and rotation. Each is one change of the file.

The file is the source of truth. Each addition is also stored as an entry, so that searches find it and the outputs it
cites are not pruned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json, bounded
from limpet.journal import beads, git
from limpet.journal import evidence as proof
from limpet.journal import file as files
from limpet.journal.document import edit, entries, removal
from limpet.journal.document.entries import (
    Blocker,
    Debt,
    Decision,
    Evidence,
    Identifier,
    Item,
    LogRow,
    Placed,
    Ref,
    rooted,
)
from limpet.journal.document.markup import JournalDocument, clean, one_line, scan
from limpet.journal.document.merge import MergeConflict
from limpet.journal.document.quotes import DRIFTED, FRESH, MOVED, digest_of, judge, lines_of
from limpet.journal.document.recover import Recovered
from limpet.journal.document.removal import EDITED, Hunk
from limpet.journal.document.sections import DEBT, template
from limpet.journal.recover import Journal, journal_of, recovered, stamp_of
from limpet.memory import handoff
from limpet.model import AGENT, FILE, JOURNAL, Draft, Entry, moment
from limpet.record import NamedTuple
from limpet.redaction import redact
from limpet.store import Listing
from limpet.text import brief

DONE = "RESOLVED"
LISTED = 10  # blockers and goals each that a handoff names
CONTESTED = "Another program saves {file} again and again; its last save is merged with the next change."
FINISHED = ("question", "goal", "debt", "blocker")  # sections whose entries can be done
# The optional arguments of update_journal, by section.
DETAILS = {
    "goal": {"note"},
    "identifier": {"note"},
    "blocker": {"eta"},
    "debt": {"severity", "sprint", "track"},
}
_PLACE_AND_WORDS = re.compile(r"(.+?):(\d{1,9})(?:-(\d{1,9}))?(?:\s+(\S.*))?\Z", re.DOTALL)
_USER_SAID = re.compile(r"user:\s*(\S.*)\Z", re.DOTALL | re.IGNORECASE)
T = TypeVar("T")


class Written(NamedTuple):
    """The result of a change. `line` is where the entry is; conflicts are with edits that people made meanwhile."""

    file: str
    line: int
    id: str = ""
    moved: tuple[str, ...] = ()
    merged: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
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


def field(what: str, text: str | None, *, line: bool = False) -> str:
    """A text cleaned for an entry; "" for None."""
    if text is None:
        return ""
    cleaned = one_line(text) if line else clean(text)
    advice = "Keep the long part as an output or a file, and name it."
    return bounded(what, cleaned, limits.JOURNAL_FIELD_MAX_CHARS, advice, blank=f"Say the {what} in a sentence.")


def _write(ctx: Context, change: edit.Change, operation: str, *blocks: str) -> Written:
    """Apply a change to the file, and store each of the blocks it added as an entry."""
    written, hunks = _changed(ctx, change)
    for block in blocks:
        _keep(ctx, block, written.file, operation, hunks if len(blocks) == 1 else ())
    return written


def _changed(ctx: Context, change: edit.Change) -> tuple[Written, tuple[Hunk, ...]]:
    """Apply a change to the file. What it changed there is stored with the entry, so that it can be undone; it is empty
    where the lines hold a secret, or a person edited the same ones."""
    journal = journal_of(ctx)
    saved = files.update(journal.place, change, template)
    hunks = removal.hunks_between(saved.before, saved.text)
    if saved.conflicts or any(redact(hunk.old).count or redact(hunk.new).count for hunk in hunks):
        hunks = ()
    line = _first_change(saved.before, saved.text)
    hint = CONTESTED.format(file=journal.rules.file) if saved.contested else ""
    return Written(journal.rules.file, line, merged=saved.merged, conflicts=saved.conflicts, hint=hint), hunks


def _keep(ctx: Context, block: str, file: str, operation: str, hunks: Sequence[Hunk]) -> None:
    draft = Draft(block, ctx.session, extra={"file": file, **_edited(hunks)})
    ctx.store.entries.edit(ctx.scope, JOURNAL, None, lambda before: draft, ctx.stamp(operation))


def _edited(hunks: Sequence[Hunk]) -> Json:
    return {EDITED: [hunk._asdict() for hunk in hunks]}


def _first_change(before: str, after: str) -> int:
    """The number of the first line that is new."""
    old, new = before.split("\n"), after.split("\n")
    differing = (number for number, pair in enumerate(zip(old, new, strict=False), 1) if pair[0] != pair[1])
    return next(differing, len(old))


# --- decisions --------------------------------------------------------------------------------------------------------


def log_decision(
    ctx: Context, title: str, decision: str, rationale: str, evidence: Sequence[str], scenarios: Sequence[str]
) -> Written:
    if not evidence:
        raise errors.bad_evidence("", "none was given")
    cases = tuple(field("test scenario", item) for item in scenarios if item.strip())
    if len(cases) < limits.JOURNAL_SCENARIOS:
        raise errors.few_scenarios(len(cases), limits.JOURNAL_SCENARIOS)
    texts = field("title", title, line=True), field("decision", decision), field("rationale", rationale)
    proofs = [take_evidence(ctx.root, item) for item in evidence]
    entry = Decision(stamp_of(ctx), *texts, tuple(item for item, _ in proofs), cases)
    block = edit.decision_block(entry, 4)
    written = _write(ctx, lambda text: edit.add_decision(text, entry), "log_decision", block)
    moved = tuple(str(item.ref) for item, state in proofs if state == MOVED)
    return written._replace(moved=moved)


def take_evidence(root: str, item: str) -> tuple[Evidence, str]:
    """Evidence as an agent gives it, with the quote from the file itself, and whether it was fresh or moved."""
    if statement := _USER_SAID.match(item.strip()):
        return Evidence(statement[1].strip().strip('"'), None), FRESH
    ref, quote = _place_and_quote(item)
    place = None if ref is None else rooted(ref, os.path.realpath(root))
    if place is None or not place.first:
        raise errors.bad_evidence(item, "it names no lines of a file inside the project")
    text = proof.source(root, place.path)
    if text is None:
        raise errors.bad_evidence(item, f"there is no readable file {place.path} in the project")
    if not quote:
        return Evidence(_quoted(item, text, place), place), FRESH
    verdict = judge(quote, place, text)
    if verdict.state == DRIFTED:
        raise errors.bad_evidence(item, f"{place.path} does not hold these words")
    return Evidence(_checked(item, quote), verdict.ref), verdict.state


def _place_and_quote(item: str) -> tuple[Ref | None, str]:
    parsed = entries.evidence(item.strip())
    if parsed.ref is not None:
        return parsed.ref, parsed.quote
    plain = _PLACE_AND_WORDS.match(item.strip())
    if plain is None:
        return None, ""
    return entries.as_ref(plain[1], int(plain[2]), int(plain[3] or plain[2])), (plain[4] or "").strip().strip("`")


def _quoted(item: str, text: str, place: Ref) -> str:
    """The lines the place names, without the indent they share."""
    lines = [line.rstrip() for line in lines_of(text, place)]
    if len(lines) < place.last - place.first + 1 or not any(lines):
        raise errors.bad_evidence(item, f"{place.path} has no words at these lines")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line)
    return _checked(item, "\n".join(line[indent:] for line in lines).strip("\n"))


def _checked(item: str, quote: str) -> str:
    if quote.count("\n") >= limits.JOURNAL_QUOTE_MAX_LINES:
        raise errors.bad_evidence(item, f"it quotes more than {limits.JOURNAL_QUOTE_MAX_LINES} lines")
    if redact(quote).count:
        raise errors.bad_evidence(item, "it quotes what looks like a secret, and a journal is shared")
    try:
        quote.encode()
    except UnicodeEncodeError:
        raise errors.bad_evidence(item, "it quotes bytes that are no text") from None
    return quote


# --- items ------------------------------------------------------------------------------------------------------------


def update_journal(ctx: Context, /, section: str, text: str, done: bool = False, **details: Any) -> Written:
    """Add an entry to a section, or mark the one entry of it that contains the text as done."""
    if done:
        if section not in FINISHED:
            raise errors.not_one_of("update_journal", "section with done", section, FINISHED)
        if details:
            raise errors.not_used("update_journal", "done", " and ".join(sorted(details)))
        return _finish(ctx, section, text)
    if unused := sorted(set(details) - DETAILS.get(section, set())):
        raise errors.not_used("update_journal", f"section {section}", " and ".join(unused))
    return _add(ctx, section, text, details)


def _add(ctx: Context, section: str, text: str, details: dict[str, Any]) -> Written:
    words = field("text", text)
    note = field("note", details.get("note"), line=True)
    if section == "question":
        block = edit.item_block(Item(words))
        return _write(ctx, lambda text: edit.add_question(text, Item(words)), "update_journal", block)
    if section == "goal":
        waits = note if not note or note.lower().startswith(("blocking: ", "depends on: ")) else f"blocking: {note}"
        goal = Item(words, note=waits)
        return _write(ctx, lambda text: edit.add_goal(text, goal), "update_journal", edit.item_block(goal))
    if section == "blocker":
        eta = field("eta", details.get("eta"), line=True)
        blocker = Blocker("Waiting" if eta else "Blocked", words, eta)
        return _write(ctx, lambda text: edit.add_blocker(text, blocker), "update_journal", edit.blocker_block(blocker))
    if section == "debt":
        return _add_debt(ctx, words, details)
    if section == "identifier":
        return _add_identifier(ctx, one_line(words), note)
    names = edit.TASK if section == "task" else edit.STATE
    return _write(ctx, lambda text: edit.set_context(text, names, words), "update_journal", _field_block(names, words))


def _field_block(names: tuple[str, ...], value: str) -> str:
    return f"- **{names[0]}**: {value}\n"


def _add_debt(ctx: Context, words: str, details: dict[str, Any]) -> Written:
    journal = journal_of(ctx)
    archive = files.read(journal.archive) or ""
    severity = details.get("severity", "MEDIUM")
    sprint = field("sprint", details.get("sprint"), line=True)
    debts: list[Debt] = []

    def change(text: str) -> str:
        debts[:] = [Debt(edit.next_debt_id(text, archive), words, severity, ctx.session, sprint)]
        return edit.add_debt(text, debts[0])

    # The change itself chooses the number, so the entry is stored after it.
    saved, hunks = _changed(ctx, change)
    debt = debts[0]
    _keep(ctx, f"{debt.id}: {debt.description} ({debt.severity})", saved.file, "update_journal", hunks)
    if not details.get("track"):
        return saved._replace(id=debt.id, hint=beads.offer(debt))
    tracked = beads.track(ctx.root, debt)
    if tracked.issue:
        _write(ctx, lambda text: _with_issue(text, debt.id, tracked.issue), "update_journal")
    return saved._replace(id=debt.id, hint=tracked.hint)


def _with_issue(text: str, debt: str, issue: str) -> str:
    """The journal with the id of an issue behind the description of its debt."""
    placed = [item for item in entries.debts(scan(text)) if item.entry.id == debt]
    return edit.set_cells(text, DEBT, {item.start: {1: f"{item.entry.description} ({issue})"} for item in placed})


def _add_identifier(ctx: Context, place: str, purpose: str) -> Written:
    ref = entries.place_ref(place)
    inside = None if ref is None else rooted(ref, os.path.realpath(ctx.root))
    text = None if inside is None else proof.source(ctx.root, inside.path)
    if inside is None or text is None:
        raise errors.bad_evidence(place, "it names no readable file inside the project")
    entry = Identifier(str(inside), purpose, stamp_of(ctx))
    written = _write(ctx, lambda text: edit.add_identifier(text, entry), "update_journal", f"{entry.place}: {purpose}")
    side = journal_of(ctx).place
    proof.remember_verified(side, {**proof.verified(side), entry.place: digest_of(lines_of(text, inside))})
    return written


def _finish(ctx: Context, section: str, text: str) -> Written:
    """Mark the one open entry of a section that contains the words as done."""
    words = one_line(field("text", text)).casefold()
    finished: list[tuple[JournalDocument, int, str]] = []

    def change(journal: str) -> str:
        doc = scan(journal)
        finished[:] = [(doc, 0, "")]
        if section == "blocker":
            blockers = [(item, item.entry.text) for item in entries.blockers(doc) if not item.entry.resolved]
            blocker = _only(section, text, words, blockers)
            finished[:] = [(doc, blocker.start, blocker.entry.text)]
            return edit.resolve(journal, blocker)
        if section == "debt":
            unresolved = [item for item in entries.debts(doc) if item.entry.severity != DONE]
            debts = [(item, f"{item.entry.id} {item.entry.description}") for item in unresolved]
            debt = _only(section, text, words, debts)
            finished[:] = [(doc, debt.start, debt.entry.description)]
            return edit.set_cells(journal, DEBT, {debt.start: {2: DONE}})
        items = entries.questions(doc) if section == "question" else entries.goals(doc)
        unfinished = [(item, item.entry.text) for item in items if not item.entry.done]
        item = _only(section, text, words, unfinished)
        finished[:] = [(doc, item.start, item.entry.text)]
        return edit.tick(journal, item)

    written, hunks = _changed(ctx, change)
    _keep_finished(ctx, written.file, section, finished[0], hunks)
    return written


def _keep_finished(
    ctx: Context, file: str, section: str, finished: tuple[JournalDocument, int, str], hunks: Sequence[Hunk]
) -> None:
    """Record that an item is done, at the entry that was stored when it was added, or as an entry of its own."""
    doc, start, content = finished
    added = ctx.store.entries.list(ctx.scope, Listing((JOURNAL,), limit=limits.LIST_MAX)).entries
    key = removal.authors(doc, [(entry.content, entry.key) for entry in added]).get(start)

    def decide(before: Entry | None) -> Draft:
        if before is None:  # a person wrote it into the file
            done = f"{section} done: {content}"
            return Draft(done, ctx.session, extra={"file": file, **_edited(hunks)}, origin=FILE)
        return before.revised(extra={**before.extra, **_edited(hunks)}, origin=before.origin)

    ctx.store.entries.edit(ctx.scope, JOURNAL, key, decide, ctx.stamp("update_journal"))


def _only(section: str, text: str, words: str, candidates: list[tuple[Placed[T], str]]) -> Placed[T]:
    exact = [placed for placed, content in candidates if one_line(content).casefold() == words]
    fitting = exact or [placed for placed, content in candidates if words in one_line(content).casefold()]
    if not fitting:
        raise errors.no_item(section, text)
    if len(fitting) > 1:
        raise errors.ambiguous_item(section, text, len(fitting))
    return fitting[0]


# --- duties -----------------------------------------------------------------------------------------------------------


def checkpoint_session(
    ctx: Context,
    summary: str,
    state: str | None = None,
    task: str | None = None,
    agent: str | None = None,
    line: str | None = None,
) -> Checkpoint:
    """At the end of a session, or before its window is compacted: a log row, the current state, and the handoff."""
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

    blocks = [_field_block(*field) for field in fields[1:]]
    written = _write(ctx, change, "checkpoint_session", f"{at} {row.agent}: {words}", *blocks)
    doc = scan(journal_of(ctx).text())
    blocking = [placed for placed in entries.blockers(doc) if not placed.entry.resolved]
    aims = [placed for placed in entries.goals(doc) if not placed.entry.done]
    blockers, goals = tuple(placed.entry.text for placed in blocking), tuple(placed.entry.text for placed in aims)
    questions = tuple(placed.entry.text for placed in entries.questions(doc) if not placed.entry.done)
    text = _handoff(words, state, blockers, goals, written.file)
    repeated = [*(placed.start for placed in blocking[:LISTED]), *(placed.start for placed in aims[:LISTED])]
    handoff.leave(ctx, text, line, _sources(ctx, doc, repeated))
    moved = rotate_journal(ctx)
    return Checkpoint(written, at, blockers, goals, questions, True, moved.decisions + moved.rows)


def _sources(ctx: Context, doc: JournalDocument, starts: list[int]) -> tuple[str, ...]:
    """The provenance of these lines: the origin of the entry that added them, else a person who edited the file."""
    added = ctx.store.entries.list(ctx.scope, Listing((JOURNAL,), limit=limits.LIST_MAX)).entries if starts else ()
    origins = removal.authors(doc, [(entry.content, entry.origin) for entry in added])
    return tuple(origins.get(start, FILE) for start in starts)


def _handoff(summary: str, state: str | None, blockers: tuple[str, ...], goals: tuple[str, ...], file: str) -> str:
    parts = [summary]
    if state:
        parts.append(f"Where it stands: {clean(state)}")
    for title, items in (("Blocked by", blockers), ("Not finished", goals)):
        if items:
            more = f"\n- and {len(items) - LISTED} more" if len(items) > LISTED else ""
            parts.append(f"{title}:\n" + "\n".join(f"- {one_line(item)}" for item in items[:LISTED]) + more)
    parts.append(f"More: recover_journal, or {file}.")
    return "\n\n".join(parts)[: limits.HANDOFF_MAX_CHARS]


def take_back(ctx: Context, hunks: Sequence[Hunk], seq: int, *, again: bool = False) -> None:
    """Undo a change of the file, or do it again after it was undone; refused where its lines are not as written."""

    def change(text: str) -> str:
        result = removal.redone(text, hunks) if again else removal.undone(text, hunks)
        if result is None:
            raise errors.journal_changed(seq, journal_of(ctx).rules.file)
        return result

    files.update(journal_of(ctx).place, change)


def init_journal(ctx: Context) -> bool:
    """Create the journal from its template if there is none. Whether it was created."""
    return files.revive(journal_of(ctx).place, template()) if _state(ctx) != "healthy" else False


def heal_journal(ctx: Context, check: bool = False) -> Healed:
    """Restore an empty or missing journal: from the last state seen, else from git, else from the template."""
    journal = journal_of(ctx)
    state = _state(ctx)
    if state == "healthy":
        return Healed(journal.rules.file, state, "", False)
    last_text = files.last_seen(journal.place)
    committed = "" if last_text.strip() else _committed(journal)
    source, text = "template", template()
    if last_text.strip():
        source, text = "last seen", last_text
    elif committed.strip():
        source, text = "git", committed
    written = False if check else files.revive(journal.place, text)
    return Healed(journal.rules.file, state, source, written)


def recover_journal(ctx: Context, level: int = 1, query: str = "") -> Recovered:
    """What the journal says. For an agent, a journal that was lost is brought back first; looking writes nothing."""
    if ctx.who == AGENT:
        healed = heal_journal(ctx, check=True)
        if healed.state == "missing" and healed.source == "template":
            raise errors.journal_not_begun(healed.file)
        if healed.source in ("last seen", "git"):
            heal_journal(ctx)
    return recovered(journal_of(ctx), level, query, moment(ctx.now))


def _committed(journal: Journal) -> str:
    folder, name = os.path.split(journal.place.path)
    return (git.committed(folder, name) or b"").decode("utf-8", "surrogateescape")


def _state(ctx: Context) -> str:
    text = files.read(journal_of(ctx).place)
    return "missing" if text is None else "healthy" if text.strip() else "empty"


def rotate_journal(ctx: Context, force: bool = False) -> Rotated:
    """Move old entries to the archive. They are written there before they are removed here: a crash loses nothing."""
    journal = journal_of(ctx)
    rules = journal.rules
    name = edit.archive_name(rules.file)
    text = journal.text()
    if not force and len(text.encode("utf-8", "surrogateescape")) <= rules.rotate_bytes:
        return Rotated(rules.file, name, 0, 0)
    moved = edit.choose_old(text, rules.keep_decisions, rules.keep_log_rows)
    if moved:
        files.update(journal.archive, lambda old: edit.add_to_archive(old, moved), lambda: edit.new_archive(rules.file))
        files.update(journal.place, lambda now: edit.without_moved(now, moved, name.rsplit("/", 1)[-1]))
    return Rotated(rules.file, name, len(moved.decisions), len(moved.rows))


# --- answers ----------------------------------------------------------------------------------------------------------


def written_json(value: Written) -> Json:
    answer: Json = {"ok": True, "file": value.file, "line": value.line}
    if value.id:
        answer["id"] = value.id
    if value.moved:
        answer["moved"] = list(value.moved)
    if value.merged:
        answer["merged"] = True
    if value.conflicts:
        answer["conflicts"] = [{"agent": conflict.ours, "by_hand": conflict.theirs} for conflict in value.conflicts]
    return answer | ({"hint": value.hint} if value.hint else {})


def written_text(_ctx: Context, value: Written) -> str:
    id = f" as {value.id}" if value.id else ""
    parts = [f"Written{id} to {value.file}, line {value.line}."]
    if value.moved:
        parts.append(f"Moved: {', '.join(map(str, value.moved))}.")
    if value.merged:
        parts.append("Somebody had edited the file; both changes are in it.")
    parts += [f"Conflict: you wrote {clash.ours!r}, the file has {clash.theirs!r}." for clash in value.conflicts]
    return " ".join([*parts, value.hint]).rstrip()


def checkpoint_text(ctx: Context, value: Checkpoint) -> str:
    parts = [written_text(ctx, value.written), "The handoff is left." if value.handoff else "No handoff was left."]
    still_open = {"blockers": value.blockers, "goals": value.goals, "questions": value.questions}
    parts += [f"Open {name}: {'; '.join(items)}." for name, items in still_open.items() if items]
    if value.rotated:
        parts.append(f"{brief.counted(value.rotated, 'old entry', 'old entries')} moved to the archive.")
    return "\n".join(parts)


def checkpoint_json(value: Checkpoint) -> Json:
    return written_json(value.written) | {
        "at": value.at,
        "blockers": list(value.blockers),
        "incomplete": list(value.goals),
        "questions": list(value.questions),
        "handoff": value.handoff,
        "rotated": value.rotated,
    }


def created_json(created: bool) -> Json:
    return {"created": created}
