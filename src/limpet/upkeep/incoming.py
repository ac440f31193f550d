"""What an import must look like: names, times and records as Limpet itself writes them.

An import is somebody else's data. A name is shown without a quotation, a time moves the project's clock, and a record
of the wrong shape would fail at every later read. So each of them is checked before anything is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from limpet import errors, limits
from limpet.catalogue.ids import is_short
from limpet.catalogue.operation import a_name
from limpet.model import (
    DIGEST,
    FOLD,
    HANDOFF,
    JOURNAL,
    LAST_MS,
    MEMORY,
    MESSAGE,
    NOTE,
    NOTEPAD,
    PIN,
    SEALS,
    SESSION,
    STATE,
    TASK,
    WRITTEN_AT,
    Entry,
    EntryName,
    number_or,
)
from limpet.record import NamedTuple
from limpet.text import safe
from limpet.window import transcript
from limpet.window.plan.serialise import PackedMessage, unpack

MINTED = (NOTE, TASK, PIN, FOLD, JOURNAL)  # their keys end with the time when they were made
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
Shape = Callable[[Any], bool]


def _is(*types: type) -> Shape:
    return lambda value: type(value) in types


def _list_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, list) and all(map(shape, value))


def _table_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, dict) and all(map(shape, value.values()))


def _record(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """An object with these fields. It may have others, which later versions know."""
    shapes = {**required, **(optional or {})}

    def fits(value: Any) -> bool:
        if not isinstance(value, dict) or required.keys() - value.keys():
            return False
        return all(shapes[name](field) for name, field in value.items() if name in shapes)

    return fits


_TEXT, _FLAG, _NUMBER, _TEXTS = _is(str), _is(bool), _is(int), _list_of(_is(str))
_MAYBE_TEXT, _MAYBE_NUMBER = _is(str, type(None)), _is(int, type(None))
_FINGERPRINT = _record({"sha256": _TEXT, "parts": _table_of(_TEXT)})
_MESSAGE = {"role": _TEXT, "digest": _TEXT, "tokens": _NUMBER, "body": _TEXT}


def _no_seal_or_fingerprint(value: Any) -> bool:
    return value is None or _FINGERPRINT(value)


def _cleared_lines(value: Any) -> bool:
    """Texts by the position of a message and what follows it."""
    return value is None or (_table_of(_TEXT)(value) and all(key.partition(" ")[0].isdecimal() for key in value))


def _span(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_NUMBER, value))


# The `extra` of each kind that has one; the types that read it are in session/records.py and window/transcript.py.
EXTRA: Mapping[str, Shape] = {
    HANDOFF: _record(
        {"written_at": _NUMBER},
        {"line": _TEXT, "used_by": _MAYBE_TEXT, "draft": _FLAG, "shown_to": _TEXTS, "sources": _TEXTS},
    ),
    TASK: _record(
        {"state": _TEXT, "depth": _NUMBER, "first": _NUMBER},
        {"outcome": _TEXT, "last": _MAYBE_NUMBER, "ledger": _TEXT, "ended_at": _MAYBE_NUMBER},
    ),
    SESSION: _record(
        {},
        {
            "depth": _NUMBER,
            "token_limit": _MAYBE_NUMBER,
            "archived_at": _MAYBE_NUMBER,
            "notes": _TEXTS,
            "references": _TEXTS,
            "children": _TEXTS,
            "capsule": _table_of(_TEXTS),
            "model": _TEXT,
            "forked": _FLAG,
            "outcome": _MAYBE_TEXT,
            "result": _MAYBE_TEXT,
            "hosted": _record(
                {}, {"checkpoint": _TEXT, "source": _TEXT, "at": _NUMBER, "pad": _NUMBER, "restore": _FLAG}
            ),
        },
    ),
    FOLD: _record(
        {"how": _TEXT, "first": _NUMBER, "last": _NUMBER},
        {
            **dict.fromkeys(("before", "after", "limit", "head"), _MAYBE_NUMBER),
            "lines": _cleared_lines,
            "shown": _list_of(_span),
            "facts": _is(dict, type(None)),
            "score": _is(int, float, type(None)),
            "missing": _TEXTS,
            "messages": _list_of(_record({**_MESSAGE, "text": _TEXT})),
        },
    ),
    MESSAGE: _record(_MESSAGE, {"after": _MAYBE_NUMBER}),
    NOTEPAD: _record({}, {"tokens": _NUMBER}),
    JOURNAL: _record({}, {"file": _TEXT}),
    SEALS: _record({"tools": _table_of(_record({"seal": _no_seal_or_fingerprint, "seen": _FINGERPRINT}))}),
}


def _other_entry(value: Any) -> bool:
    return value is None or (_TEXTS(value) and len(value) == len(EntryName._fields))


def _moment(value: Any) -> bool:
    return value is None or (_NUMBER(value) and 0 <= value <= LAST_MS)


def _anchor(value: Any) -> bool:
    if not isinstance(value, list) or [type(field) for field in value] != [str, str, int]:
        return False
    return not value[1] or re.fullmatch(DIGEST, value[1]) is not None


# What an entry of any kind may say of its validity: `Validity` of model.py.
_VALIDITY = _record(
    {},
    {
        "replaces": _other_entry,
        "replaced_by": _other_entry,
        "expires_at": _moment,
        "anchors": lambda value: value is None or _list_of(_anchor)(value),
    },
)


class ImportRules(NamedTuple):
    """The checks of one import. Each raises `bad_import`, which names the line."""

    latest: int  # milliseconds; a later time is refused

    @classmethod
    def at(cls, now: int, *, exact: bool) -> ImportRules:
        return cls(now + (limits.IMPORT_EXACT_AHEAD_MS if exact else limits.IMPORT_AHEAD_MS))

    def entry(self, line: int, entry: Entry) -> None:
        _key(line, entry.kind, entry.key)
        _name(line, "session", entry.session, limits.SESSION_MAX_CHARS)
        _name(line, "origin", entry.origin, limits.SESSION_MAX_CHARS)
        for tag in entry.tags:
            _name(line, "tag", tag, limits.TAG_MAX_CHARS, needed=True)
        self._counted(line, "version", entry.version)
        for name in ("created_at", "updated_at"):
            self._time(line, name, getattr(entry, name))
        number = entry.key.rpartition("_")[2]
        if entry.kind in MINTED and number.isdecimal():
            self._time(line, "key", int(number) if len(number) <= limits.IMPORT_DIGITS else self.latest + 1)
        self._extra(line, entry)

    def event(self, line: int, fields: Mapping[str, Any]) -> None:
        self._counted(line, "seq", fields["seq"])
        self._counted(line, "version", fields["version"])
        self._time(line, "at", fields["at"])
        _key(line, fields["kind"], fields["key"])
        for name in ("by", "operation", "session"):
            _name(line, name, fields[name], 2 * limits.SESSION_MAX_CHARS)

    def output(self, line: int, fields: Mapping[str, Any]) -> None:
        """An output or a tombstone. The store compares its content with its digest."""
        for name in ("created_at", "used_at", "gone_at"):
            self._time(line, name, fields.get(name, 0))
        for name in ("id", "digest", "tool", "session", "why", "by"):
            _name(line, name, fields.get(name, ""), 2 * limits.SESSION_MAX_CHARS)

    def _extra(self, line: int, entry: Entry) -> None:
        extra = dict(entry.extra)
        try:
            fits = EXTRA.get(entry.kind, _is(dict))(extra)
            if fits and entry.kind == MESSAGE:
                transcript.message_of(entry)
                transcript.position_of(entry.key)
            if fits and entry.kind == FOLD:
                for record in extra.get("messages") or ():
                    unpack(PackedMessage(record["text"], record["body"]))
            if entry.kind == STATE:
                json.loads(entry.content)
        except (*MALFORMED, RecursionError):
            fits = False
        if not fits:
            raise errors.bad_import(line, f"the {entry.kind} {errors.quoted(entry.key)} is not as Limpet stores one")
        self._validity(line, entry)
        if entry.kind == HANDOFF:
            _name(line, "line of work", extra.get("line", entry.key), 2 * limits.KEY_MAX_CHARS + 1, needed=True)
        hosted = extra.get("hosted") if entry.kind == SESSION else None
        times = {name: extra.get(name) for name in ("written_at", "archived_at", "ended_at") if entry.kind in EXTRA}
        if entry.kind in (NOTE, MEMORY):
            times[WRITTEN_AT] = number_or(extra.get(WRITTEN_AT))
        for name, at in {**times, "at": (hosted or {}).get("at")}.items():
            self._time(line, name, at or 0)

    def _validity(self, line: int, entry: Entry) -> None:
        """What an entry cites and replaces. Places and keys are shown to a model without a quotation."""
        extra = entry.extra
        if not _VALIDITY(dict(extra)) or len(extra.get("anchors") or ()) > limits.ANCHORS_MAX:
            raise errors.bad_import(line, f"the {entry.kind} {errors.quoted(entry.key)} is not as Limpet stores one")
        for name in ("replaces", "replaced_by"):
            for text in extra.get(name) or ():
                _name(line, name, text, limits.KEY_MAX_CHARS + limits.SESSION_MAX_CHARS + 1, needed=True)
        for place, _, at in extra.get("anchors") or ():
            _name(line, "anchor", place, limits.ANCHOR_MAX_CHARS, needed=True)
            self._time(line, "anchor", at)

    def _time(self, line: int, name: str, at: int) -> None:
        """A time may be a little ahead, because the clock of another machine may be."""
        if not 0 <= at <= self.latest:
            raise errors.bad_import(line, f"its {name} is a time that has not come yet")

    def _counted(self, line: int, name: str, number: int) -> None:
        if number > limits.IMPORT_CHANGES_MAX:
            raise errors.bad_import(line, f"its {name} is above {limits.IMPORT_CHANGES_MAX:,}")


def _key(line: int, kind: str, key: str) -> None:
    """The rule by which the operations name entries of this kind."""
    if kind in (MEMORY, STATE, SEALS):
        try:
            plain = a_name("key", key, limits.KEY_MAX_CHARS) == key
        except errors.BadInput:
            plain = False
        if not plain:
            raise errors.bad_import(line, _why("key", key, limits.KEY_MAX_CHARS))
    else:
        _name(line, "key", key, limits.KEY_MAX_CHARS + limits.SESSION_MAX_CHARS + 1, needed=True)
        if kind in MINTED and len(key.split()) > 1:
            raise errors.bad_import(line, f"its key {errors.quoted(key)} has several words, and could pass for a text")
        if kind in MINTED and is_short(key):
            raise errors.bad_import(line, f"its key {errors.quoted(key)} is a short id, which may be another entry's")


def _name(line: int, what: str, name: str, limit: int, *, needed: bool = False) -> None:
    if not _is_name(name, limit) or (needed and not name):
        raise errors.bad_import(line, _why(what, name, limit))


@lru_cache(10_000)  # many lines name the same few sessions, tags and authors
def _is_name(name: str, limit: int) -> bool:
    return len(name) <= limit and name.strip() == name and safe.visible(name, keep_newlines=False) == name


def _why(what: str, name: str, limit: int) -> str:
    return f"its {what} {errors.quoted(name)} must be one line of at most {limit} visible characters"
