"""What the entries of messages and folds store in `extra`, as types.

The JSON keys are part of the stored format. Keys that a record does not name, for example of an import, are kept as
they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from limpet.model import EMPTY

WARN = "warn"  # not a fold: the record that the agent was warned
PURGED = "[purged]"  # replaces the text of what was purged


class MessageRecord(NamedTuple):
    """The `extra` of a message; its content is the searchable text."""

    role: str
    digest: str  # of the message as the caller sent it, before secrets were masked
    tokens: int
    body: str  # see `plan/serialise.py`
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> MessageRecord:
        unknown = EMPTY if len(extra) == 4 else _unknown(extra, cls._fields)
        return cls(extra["role"], extra["digest"], extra["tokens"], extra["body"], unknown)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.unknown,
            "role": self.role,
            "digest": self.digest,
            "tokens": self.tokens,
            "body": self.body,
        }


class FoldRecord(NamedTuple):
    """The `extra` of a fold or a warning; its content is the text that is shown."""

    how: str  # CLEAR, COMPACT, REWIND of `plan/folding.py`, or WARN
    first: int  # positions, both included
    last: int
    lines: Mapping[str, str] | None = None  # of CLEAR: result key -> its line
    shown: tuple[tuple[int, int], ...] = ()  # ranges inside it that stay visible
    facts: Mapping[str, Any] | None = None  # of COMPACT, as are those below
    score: float | None = None
    missing: tuple[str, ...] | None = None
    before: int | None = None  # tokens of the request
    after: int | None = None
    limit: int | None = None  # of COMPACT and WARN: the model's window in tokens
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> FoldRecord:
        missing = extra.get("missing")
        return cls(
            extra["how"],
            extra["first"],
            extra["last"],
            extra.get("lines"),
            tuple((first, last) for first, last in extra.get("shown", ())),
            extra.get("facts"),
            extra.get("score"),
            None if missing is None else tuple(missing),
            extra.get("before"),
            extra.get("after"),
            extra.get("limit"),
            _unknown(extra, cls._fields),
        )

    def to_json(self) -> dict[str, Any]:
        optional = {
            "facts": self.facts,
            "score": self.score,
            "missing": None if self.missing is None else list(self.missing),
            "before": self.before,
            "after": self.after,
            "limit": self.limit,
            "lines": None if self.lines is None else dict(self.lines),
            "shown": [list(span) for span in self.shown] or None,
        }
        return {
            **self.unknown,
            "how": self.how,
            "first": self.first,
            "last": self.last,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def with_shown(self, first: int, last: int) -> FoldRecord:
        """The same fold with one more visible range; ranges that touch become one."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted([*self.shown, (first, last)]):
            if joined and start <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(joined[-1][1], end))
            else:
                joined.append((start, end))
        return self._replace(shown=tuple(joined))

    def lines_in(self, first: int, last: int) -> list[str]:
        """The keys of the results that were cleared in a range of positions."""
        return [key for key in self.lines or () if first <= int(key.partition(" ")[0]) <= last]


def _unknown(extra: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in extra.items() if name not in fields}
