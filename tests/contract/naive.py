"""The contract as a program: a store in memory that does everything the plain way, to compare real stores with.

It keeps what an entry was before and after each change, counts by counting, and searches by reading everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from limpet import errors
from limpet.model import EMPTY, MEMORY, SESSION, Change, Draft, Entry, Event, Scope, Stamp, TagCount, Tally
from limpet.store import Decide, Delete, EventQuery, Listing, Page, Words, entry_record
from limpet.stores.shared.rows import indexed_text, next_entry, unchanged
from limpet.text.words import fold, index_words, terms


@dataclass
class Project:
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    labels: dict[tuple[str, str], str] = field(default_factory=dict)
    clock: int | None = None

    def copy(self) -> Project:
        return replace(self, entries=dict(self.entries), events=list(self.events), labels=dict(self.labels))

    def change(self, kind: str, key: str | None, wanted: Draft | Delete, stamp: Stamp) -> Event:
        self.clock = stamp.now if self.clock is None else max(self.clock + (key is None), stamp.now)
        used = {event.key for event in self.events if event.kind == kind}
        while key is None:
            if f"{kind}_{self.clock}" in used:
                self.clock += 1
            else:
                key = f"{kind}_{self.clock}"
        version = 1 + sum((event.kind, event.key) == (kind, key) for event in self.events)
        before, after = self.entries.pop((kind, key), None), None
        if isinstance(wanted, Draft):
            after = next_entry(kind, key, before, wanted, stamp, self.clock, version)
            self.entries[kind, key] = after
            for tag in [] if after.done else after.tags:
                self.labels.setdefault((kind, fold(tag)), tag)
        seq = len(self.events) + 1
        event = Event(
            seq,
            self.clock,
            stamp.by,
            stamp.operation,
            stamp.session,
            kind,
            key,
            version,
            dict(stamp.detail),
            before,
            after,
        )
        self.events.append(event)
        return event


def _text(entry: Entry) -> str:
    """What a substring is looked for in."""
    return fold(f"{entry.key}\n{entry.content}" if entry.kind == MEMORY else entry.content)


class NaiveStore:
    def __init__(self) -> None:
        self._projects: dict[Scope, Project] = {}

    @property
    def entries(self) -> NaiveStore:
        return self

    def _of(self, scope: Scope) -> Project:
        return self._projects.get(scope, Project())

    def read(self, scope: Scope, kind: str, key: str) -> Entry | None:
        return self._of(scope).entries.get((kind, key))

    def edit(self, scope: Scope, kind: str, key: str | None, decide: Decide, stamp: Stamp) -> Change:
        project = self._of(scope).copy()  # so that nothing has changed when `decide` raises
        if kind != SESSION and stamp.session and (SESSION, stamp.session) not in project.entries:
            begin = stamp._replace(operation="begin_session", detail=EMPTY)
            project.change(SESSION, stamp.session, Draft(""), begin)
        before = None if key is None else project.entries.get((kind, key))
        wanted = decide(before)
        if isinstance(wanted, Draft):
            wanted = wanted._replace(tags=tuple(project.labels.get((kind, fold(tag)), tag) for tag in wanted.tags))
        done = unchanged(before, wanted) if isinstance(wanted, Draft) else before is None
        seq, after, session = 0, before, before.session if before else stamp.session
        if wanted is not None and not done:
            event = project.change(kind, key, wanted, stamp)
            seq, after = event.seq, event.after
            some = after or before
            session = some.session if some else ""
        if project.events:
            self._projects[scope] = project
        return Change(seq, before, after, self.tally(scope, kind, session))

    def append(self, scope: Scope, kind: str, drafts: Sequence[tuple[str, Draft]], stamp: Stamp) -> tuple[Entry, ...]:
        project = self._of(scope).copy()
        if not drafts:
            return ()
        if (SESSION, stamp.session) not in project.entries:
            project.change(SESSION, stamp.session, Draft(""), stamp._replace(operation="begin_session", detail=EMPTY))
        project.clock = max(project.clock or 0, stamp.now)
        for key, draft in drafts:
            if (kind, key) in project.entries:
                raise errors.appended_before(kind, key)
            project.entries[kind, key] = next_entry(kind, key, None, draft, stamp, project.clock, 1)
        self._projects[scope] = project
        return tuple(project.entries[kind, key] for key, _ in drafts)

    def _listed(self, scope: Scope, query: Listing) -> list[Entry]:
        found = [
            entry
            for entry in self._of(scope).entries.values()
            if entry.kind in query.kinds
            and query.session in (None, entry.session)
            and (query.include_done or not entry.done)
            and set(query.tags) <= {fold(tag) for tag in entry.tags}
        ]
        return sorted(found, key=lambda entry: (entry.updated_at, entry.key), reverse=True)

    def list(self, scope: Scope, query: Listing) -> Page:
        found = self._listed(scope, query)
        return Page(tuple(found[: query.limit]), len(found))

    def containing(self, scope: Scope, query: Listing, needle: str) -> Page:
        found = [entry for entry in self._listed(scope, query) if fold(needle) in _text(entry)]
        return Page(tuple(found[: query.limit]), len(found))

    def matching(self, scope: Scope, query: Listing, words: Words) -> set[str]:
        """The keys of the entries that match; their order is each store's own."""
        groups = [set(terms(list(group))) for group in words.groups if group]
        check = all if words.every else any
        return {
            entry.key
            for entry in self._listed(scope, query)
            if groups and check(group & set(terms(index_words(indexed_text(entry)))) for group in groups)
        }

    def tags(self, scope: Scope, kind: str, session: str) -> tuple[TagCount, ...]:
        counts: dict[str, int] = {}
        for entry in self._of(scope).entries.values():
            if entry.kind == kind and session in ("", entry.session) and not entry.done:
                for tag in entry.tags:
                    counts[fold(tag)] = counts.get(fold(tag), 0) + 1
        labels = self._of(scope).labels
        return tuple(TagCount(labels[kind, tag], count) for tag, count in sorted(counts.items()))

    def tally(self, scope: Scope, kind: str, session: str) -> Tally:
        found = [e for e in self._of(scope).entries.values() if e.kind == kind and session in ("", e.session)]
        return Tally(len(found), len(self.tags(scope, kind, session)))

    def events(self, scope: Scope, query: EventQuery) -> tuple[Event, ...]:
        found = [
            event
            for event in reversed(self._of(scope).events)
            if query.kind in (None, event.kind)
            and query.key in (None, event.key)
            and query.session in (None, event.session)
            and query.operation in (None, event.operation)
            and (query.since is None or event.at >= query.since)
            and (query.until is None or event.at < query.until)
            and (query.before_seq is None or event.seq < query.before_seq)
        ]
        return tuple(found[: query.limit])

    def event(self, scope: Scope, seq: int) -> Event | None:
        return next((event for event in self._of(scope).events if event.seq == seq), None)

    def numbers(self, scope: Scope, kind: str, keys: Sequence[str]) -> dict[str, int]:
        events = [event for event in self._of(scope).events if event.kind == kind and event.version == 1]
        return {event.key: event.seq for event in events if event.key in keys}

    def projects(self, tenant: str) -> tuple[str, ...]:
        return tuple(sorted(scope.project for scope in self._projects if scope.tenant == tenant))

    def dump(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for _, entry in sorted(self._of(scope).entries.items()):
            yield "entry", entry_record(entry)
        for event in self._of(scope).events:
            record = event._asdict() | {"before": None if event.before is None else entry_record(event.before)}
            del record["after"]
            yield "event", record
