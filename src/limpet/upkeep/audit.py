"""Audit: entries and outputs of a project that a person should review. It reads everything and changes nothing.

It counts use too: how often an entry was opened, called useful, and cited by another. A secret is named by its kind and
not quoted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping

from limpet import errors, limits
from limpet.catalogue.operation import Context, Json
from limpet.journal.document.quotes import GONE
from limpet.memory import anchors
from limpet.model import HANDOFF, JOURNAL, MEMORY, MESSAGE, NOTE, OUTPUT, PIN, STATE, Entry, Validity, iso
from limpet.recall import duplicates
from limpet.record import NamedTuple
from limpet.redaction import redact
from limpet.store import OPENED, USEFUL, entry_from
from limpet.text import words
from limpet.text.safe import as_name

DAY_MS = 86_400_000
SECRET, DUPLICATE, UNREAD, STALE, DRIFT = "secret", "duplicate", "unread", "stale", "drifted"
FINDINGS = (SECRET, DUPLICATE, UNREAD, STALE, DRIFT)
CITED = "cited"
COUNTS = (OPENED, USEFUL, CITED)
COMPARED = (NOTE, MEMORY)  # kinds in which a duplicate is of no use
AGEING = (NOTE, MEMORY, PIN, STATE, HANDOFF)
NOT_KNOWN = "An entry in an answer to a search does not count as opened. Outputs are not searched for secrets."
_NAME = re.compile(r"[\w./-]{6,200}")  # of a note or memory, in the text of another entry


class AuditFinding(NamedTuple):
    """One thing to review. `change` is the number of a change, for a text that is in the history but not current."""

    finding: str
    kind: str
    key: str
    reason: str
    of: str = ""  # the entry that this one duplicates
    change: int = 0


class Used(NamedTuple):
    """How often an entry was opened, called useful, and cited by others."""

    kind: str
    key: str
    opened: int
    useful: int
    cited: int


class Audit(NamedTuple):
    findings: tuple[AuditFinding, ...]
    counts: Mapping[str, int]
    left_out: int
    entries: int
    changes: int
    outputs: int
    skipped: tuple[str, ...]  # what was not examined because there is too much of it
    used: tuple[Used, ...]  # the most used first


class _Walk:
    """Collects the findings of one pass over a project."""

    def __init__(self, ctx: Context, only: frozenset[str], oldest: int) -> None:
        self.ctx = ctx
        self.look = anchors.reader(ctx.root) if os.path.isdir(ctx.root) else None
        self.names: dict[str, str] = {}  # of notes and memory: their kinds
        self.mentions: Counter[str] = Counter()
        self.only = only
        self.oldest = oldest
        self.findings: list[AuditFinding] = []
        self.compared: list[Entry] = []
        self.entries = self.changes = self.read = 0
        self.skipped: set[str] = set()
        self._former: dict[tuple[str, str], AuditFinding] = {}

    def entry(self, entry: Entry) -> None:
        self.entries += 1
        self._cites(entry)
        if DRIFT in self.only and (why := self._drift(entry)):
            self.findings.append(AuditFinding(DRIFT, entry.kind, entry.key, why))
        if SECRET in self.only and (why := self._secret(entry)):
            self.findings.append(AuditFinding(SECRET, entry.kind, entry.key, why))
        if DUPLICATE in self.only and entry.kind in COMPARED and not entry.done:
            if len(self.compared) < limits.AUDIT_COMPARED:
                self.compared.append(entry)
            else:
                self.skipped.add(f"only the first {limits.AUDIT_COMPARED:,} notes and memories were compared")
        if STALE in self.only and entry.updated_at < self.oldest and _ages(entry):
            what = "waits unused" if entry.kind == HANDOFF else "open, not changed"
            self.findings.append(
                AuditFinding(STALE, entry.kind, entry.key, f"{what} since {iso(entry.updated_at)[:10]}")
            )

    def _cites(self, entry: Entry) -> None:
        """Remember the names of notes and memory, and which names a text mentions."""
        if entry.kind in COMPARED:
            self.names[entry.key] = entry.kind
        if entry.kind != MESSAGE:
            self.mentions.update(set(_NAME.findall(entry.content)) - {entry.key})

    def _drift(self, entry: Entry) -> str:
        """What has changed in the source of an entry that is shown as true."""
        if entry.done or self.look is None:
            return ""
        cited = Validity.of(entry.extra).anchors
        look = anchors.worst(anchors.looks(self.ctx, cited, self.look)) if cited else None
        look = anchors.decision_source(entry, self.look) if entry.kind == JOURNAL else look
        if look is None or look.holds:
            return ""
        changed = "is gone" if look.state == GONE else "has changed"
        return f"was true at {iso(look.at)[:10]}: {as_name(look.place)} {changed}"

    def used(self, limit: int) -> tuple[Used, ...]:
        """Notes and memory by how often they were used, the most used first."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for use in self.ctx.store.calls.uses(self.ctx.scope):
            counts.setdefault((use.kind, use.key), Counter())[use.what] = use.times
        for key, kind in self.names.items():
            if self.mentions[key]:
                counts.setdefault((kind, key), Counter())[CITED] = self.mentions[key]
        rows = [
            Used(kind, key, count[OPENED], count[USEFUL], count[CITED])
            for (kind, key), count in counts.items()
            if self.names.get(key) == kind
        ]
        return tuple(sorted(rows, key=lambda row: (-sum(row[2:]), row.kind, row.key))[:limit])

    def change(self, seq: int, before: Entry | None) -> None:
        """Examine an earlier version. If several versions of an entry hold a secret, the latest is reported."""
        self.changes += 1
        if before is not None and SECRET in self.only and (why := self._secret(before)):
            name = (before.kind, before.key)
            self._former[name] = AuditFinding(SECRET, *name, f"{why}, in an earlier version", change=seq)

    def _secret(self, entry: Entry) -> str:
        text = "\n".join((entry.key, entry.content, *entry.tags))
        self.read += len(text)
        if self.read > limits.AUDIT_CHARS:
            self.skipped.add(f"only the first {limits.AUDIT_CHARS >> 20} million characters were searched for secrets")
            return ""
        return ", ".join(redact(text).kinds)

    def all(self) -> list[AuditFinding]:
        twins = []
        for group in duplicates.groups([entry.content for entry in self.compared]):
            first, *others = sorted(
                (self.compared[at] for at in group), key=lambda entry: (entry.created_at, entry.key)
            )
            for later in others:
                exact = words.exact(first.content) == words.exact(later.content)
                why = f"says {'' if exact else 'nearly '}the same as {first.kind} {first.key}"
                twins.append(AuditFinding(DUPLICATE, later.kind, later.key, why, first.key))
        return [*self.findings, *self._former.values(), *twins]


def _ages(entry: Entry) -> bool:
    """Whether an entry can be stale. Done entries are history, and pinned memory is meant to last."""
    return entry.kind in AGEING and not entry.done and not (entry.kind == MEMORY and entry.pinned)


def audit(
    ctx: Context,
    only: tuple[str, ...] = (),
    stale_days: int = limits.AUDIT_STALE_DAYS,
    limit: int = limits.HISTORY_SHOWN,
) -> Audit:
    """At most `limit` findings per kind, and the number of all."""
    for name in only:
        if name not in FINDINGS:
            raise errors.not_one_of("audit", "only", name, FINDINGS)
    walk = _Walk(ctx, frozenset(only or FINDINGS), ctx.now - stale_days * DAY_MS)
    for what, record in ctx.store.entries.dump(ctx.scope):
        if what == "entry":
            walk.entry(entry_from(record))
        elif SECRET in walk.only:
            walk.change(record["seq"], record["before"] and entry_from(record["before"]))
        else:
            break  # history is searched for secrets alone
    page = ctx.store.outputs.list(ctx.scope, limits.AUDIT_OUTPUTS)
    if page.total > len(page.outputs):
        walk.skipped.add(f"only {len(page.outputs):,} of {page.total:,} outputs were looked at")
    if UNREAD in walk.only:
        for output in page.outputs:
            if not output.uses and output.created_at < ctx.now - DAY_MS:
                why = f"{output.tool}, {output.size:,} bytes, never used since {iso(output.created_at)[:10]}"
                walk.findings.append(AuditFinding(UNREAD, OUTPUT, output.id, why))
    findings = walk.all()
    counts = {name: sum(item.finding == name for item in findings) for name in FINDINGS if name in walk.only}
    listed = [item for name in counts for item in [item for item in findings if item.finding == name][:limit]]
    examined = (walk.entries, walk.changes, len(page.outputs))
    skipped = tuple(sorted(walk.skipped))
    return Audit(tuple(listed), counts, len(findings) - len(listed), *examined, skipped, walk.used(limit))


def _finding_json(item: AuditFinding) -> Json:
    record: Json = {"finding": item.finding, "kind": item.kind, "id": item.key, "reason": item.reason}
    return record | ({"of": item.of} if item.of else {}) | ({"change": item.change} if item.change else {})


def audit_json(value: Audit) -> Json:
    answer: Json = {
        "findings": [_finding_json(item) for item in value.findings],
        "counts": dict(value.counts),
        "looked_at": {"entries": value.entries, "changes": value.changes, "outputs": value.outputs},
        "not_known": NOT_KNOWN,
    }
    answer |= {"left_out": value.left_out} if value.left_out else {}
    if value.used:
        named = ({"kind": row.kind, "id": row.key, **dict(zip(COUNTS, row[2:], strict=True))} for row in value.used)
        answer["used"] = list(named)
    return answer | ({"skipped": list(value.skipped)} if value.skipped else {})
