"""The journal: NOTES.md, which people and agents share. What an operation does is in journal_read and journal_work.

Those are imported when the first journal operation runs: every server starts with this module, and most of a session
has nothing to do with the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limpet import errors
from limpet.catalogue.operation import Context, Json
from limpet.model import moment
from limpet.text import tokens

if TYPE_CHECKING:
    from limpet.journal.document.clearing import Cleared
    from limpet.journal.document.recover import Recovered
    from limpet.journal.read import Checked, Linted, Verified
    from limpet.journal.write import Checkpoint, Healed, Rotated, Written

MAIN = "main"
FINISHED = ("question", "goal", "debt", "blocker")
# What may be said besides the text, by section.
EXTRAS = {
    "goal": {"note"},
    "identifier": {"note"},
    "blocker": {"eta"},
    "debt": {"severity", "sprint", "track"},
}


def recover_notes(ctx: Context, level: int = 1, query: str = "") -> Recovered:
    from limpet.journal import read, write

    return read.recovered(write.journal_of(ctx), level, query, moment(ctx.now))


def log_decision(
    ctx: Context, title: str, decision: str, rationale: str, evidence: tuple[str, ...], scenarios: tuple[str, ...]
) -> Written:
    from limpet.journal import write

    return write.log_decision(ctx, title, decision, rationale, evidence, scenarios)


def update_notes(ctx: Context, section: str, text: str, done: bool = False, **given: Any) -> Written:
    from limpet.journal import write

    if done:
        if section not in FINISHED:
            raise errors.not_one_of("update_notes", "section with done", section, FINISHED)
        if given:
            raise errors.not_used("update_notes", "done", " and ".join(sorted(given)))
        return write.finish(ctx, section, text)
    if unused := sorted(set(given) - EXTRAS.get(section, set())):
        raise errors.not_used("update_notes", f"section {section}", " and ".join(unused))
    return write.add(ctx, section, text, given)


def checkpoint_session(
    ctx: Context,
    summary: str,
    state: str | None = None,
    task: str | None = None,
    agent: str | None = None,
    line: str = MAIN,
) -> Checkpoint:
    from limpet.journal import write

    return write.checkpoint(ctx, summary, state, task, agent, line)


def init_notes(ctx: Context) -> bool:
    from limpet.journal import write

    return write.begin(ctx)


def lint_notes(ctx: Context, fix: bool = False) -> Linted:
    from limpet.journal import read, write

    return read.linted(write.journal_of(ctx), fix)


def heal_notes(ctx: Context, check: bool = False) -> Healed:
    from limpet.journal import write

    return write.heal(ctx, check)


def verify_notes(ctx: Context, check: bool = False, fix: bool = False) -> Verified:
    from limpet.journal import read, write

    journal = write.journal_of(ctx)
    return read.verify(journal, write=not check, fix=fix and not check, now=write.stamp_of(ctx))


def rotate_notes(ctx: Context, force: bool = False) -> Rotated:
    from limpet.journal import write

    return write.rotate_when_long(ctx, force=force)


def clear_result(ctx: Context, tool: str, content: str) -> Cleared | None:
    """The line that stands for a tool's result once its findings are noted, with the whole of it kept behind the line.

    None when the result is small enough to stay as it is.
    """
    from limpet.journal.document import clearing
    from limpet.outputs import outputs

    if clearing.trigger(tool, content) is None:
        return None
    rules = ctx.bounds.outputs._replace(threshold_bytes=1)  # small or not, the line must lead back to it
    kept = outputs.keep_output(ctx._replace(bounds=ctx.bounds._replace(outputs=rules)), tool, content)
    return clearing.clear(tool, content, kept.output.id if kept.output else "")


# --- answers ----------------------------------------------------------------------------------------------------------


def recovered_json(value: Recovered) -> Json:
    return {
        "level": value.level,
        "text": value.text,
        "tokens": value.tokens,
        "tokenizer": tokens.NAME,
        "how": value.how,
    }


def written_json(value: Written) -> Json:
    answer: Json = {"ok": True, "file": value.file, "line": value.line}
    if value.id:
        answer["id"] = value.id
    if value.moved:
        answer["moved"] = list(value.moved)
    if value.merged:
        answer["merged"] = True
    if value.conflicts:
        answer["conflicts"] = [{"agent": one.ours, "by_hand": one.theirs} for one in value.conflicts]
    return answer | ({"hint": value.hint} if value.hint else {})


def checkpoint_json(value: Checkpoint) -> Json:
    return written_json(value.written) | {
        "at": value.at,
        "blockers": list(value.blockers),
        "incomplete": list(value.goals),
        "questions": list(value.questions),
        "handoff": value.handoff,
        "rotated": value.rotated,
    }


def lint_json(value: Linted) -> Json:
    findings = [
        {"line": one.line, "rule": one.rule, "message": one.message, "fixable": one.fixable} for one in value.findings
    ]
    return {"ok": not findings, "findings": findings, "fixed": value.fixed}


def verified_json(value: Verified) -> Json:
    counts = dict.fromkeys(("fresh", "moved", "drifted", "gone"), 0)
    for one in value.checked:
        counts[one.verdict.state] += 1
    return {**counts, "checked": [_checked(one) for one in value.checked], "written": value.written}


def _checked(one: Checked) -> Json:
    answer: Json = {"line": one.line, "place": one.before, "state": one.verdict.state, "what": one.what}
    if str(one.verdict.ref) != one.before:
        answer["now"] = str(one.verdict.ref)
    return answer | ({"detail": one.verdict.detail} if one.verdict.detail else {})


def created_json(created: bool) -> Json:
    return {"created": created}
