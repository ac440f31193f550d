"""What the entries of sessions and tasks store in `extra`, as types, and the open tasks.

The JSON keys are part of the stored format. Keys that a record does not name are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from limpet import limits
from limpet.catalogue.operation import Context
from limpet.light import Any
from limpet.model import EMPTY, TASK, Entry, number_or, number_or_none, text_or, texts_of
from limpet.record import NamedTuple
from limpet.store import Listing

OPEN, ENDED, CANCELLED = "open", "ended", "cancelled"


class TaskRecord(NamedTuple):
    """The `extra` of a task; its content is the description. The last four are set when it ends."""

    state: str  # OPEN, ENDED or CANCELLED
    depth: int  # 1 is the outermost
    first: int  # position of the first message in it
    outcome: str = ""
    last: int | None = None
    ledger: str = ""
    ended_at: int | None = None
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> TaskRecord:
        return cls(
            text_or(extra.get("state"), OPEN),
            number_or(extra.get("depth"), 1),
            number_or(extra.get("first")),
            text_or(extra.get("outcome")),
            number_or_none(extra.get("last")),
            text_or(extra.get("ledger")),
            number_or_none(extra.get("ended_at")),
            unknown_keys(extra, cls._fields),
        )

    def to_json(self) -> dict[str, Any]:
        record = {**self.unknown, "state": self.state, "depth": self.depth, "first": self.first}
        if self.last is None:
            return record
        return {**record, "outcome": self.outcome, "last": self.last, "ledger": self.ledger, "ended_at": self.ended_at}

    @property
    def is_folded(self) -> bool:
        """Whether its messages are folded: it has ended, and was not brought back since."""
        return self.last is not None and self.last >= self.first

    def unfolded(self) -> TaskRecord:
        """The task still ended, but folding nothing."""
        return self._replace(last=self.first - 1)


class HookState(NamedTuple):
    """What the hooks of a coding agent remember from one process to the next."""

    restore: bool = False  # the context was compacted away and has not been restored yet
    checkpoint: str = ""  # what the conversation contained before the last compaction
    source: str = ""  # the origin of the checkpoint, and when it was written
    at: int = 0
    pad: int = 0  # the version of the notepad that the model was last shown
    standing: bool = False  # the conversation holds the context that was given
    greeted: int = 0  # the version of the notepad that the first result of a tool showed; of no hook
    memory: tuple[str, ...] = ()  # what of memory the context that was given holds in full: each key with a version

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> HookState:
        return cls(
            bool(record.get("restore")),
            text_or(record.get("checkpoint")),
            text_or(record.get("source")),
            number_or(record.get("at")),
            number_or(record.get("pad")),
            bool(record.get("standing")),
            number_or(record.get("greeted")),
            texts_of(record.get("memory")),
        )

    def to_json(self) -> dict[str, Any]:
        record = self._asdict()
        for later in ("standing", "greeted", "memory"):  # which records of earlier versions do not have
            if not record[later]:
                del record[later]
        return record

    @property
    def is_used(self) -> bool:
        """Whether hooks have left anything in it."""
        return any(self._replace(greeted=0))


class SessionRecord(NamedTuple):
    """The `extra` of a session; its content is the task."""

    depth: int = 0  # in the tree; 0 is a session without a parent
    notes: tuple[str, ...] = ()  # given by the parent
    references: tuple[str, ...] = ()
    token_limit: int | None = None
    model: str = ""
    forked: bool = False
    children: tuple[str, ...] = ()  # at work, as far as known
    outcome: str | None = None  # how a child ended
    result: str | None = None
    archived_at: int | None = None
    capsule: Mapping[str, tuple[str, ...]] = EMPTY  # what a child gave besides its result
    hosted: HookState | None = None
    unknown: Mapping[str, Any] = EMPTY

    @classmethod
    def from_json(cls, extra: Mapping[str, Any]) -> SessionRecord:
        hosted, capsule, outcome, result = (extra.get(name) for name in ("hosted", "capsule", "outcome", "result"))
        return cls(
            number_or(extra.get("depth")),
            texts_of(extra.get("notes")),
            texts_of(extra.get("references")),
            number_or_none(extra.get("token_limit")),
            text_or(extra.get("model")),
            extra.get("forked") is True,
            texts_of(extra.get("children")),
            outcome if isinstance(outcome, str) else None,
            result if isinstance(result, str) else None,
            number_or_none(extra.get("archived_at")),
            {name: texts_of(items) for name, items in capsule.items()} if isinstance(capsule, Mapping) else {},
            HookState.from_json(hosted) if hosted and isinstance(hosted, Mapping) else None,
            unknown_keys(extra, cls._fields),
        )

    def to_json(self) -> dict[str, Any]:
        fields = {
            "depth": self.depth or None,
            "notes": list(self.notes) or None,
            "references": list(self.references) or None,
            "token_limit": self.token_limit,
            "model": self.model or None,
            "forked": self.forked or None,
            "children": list(self.children) or None,
            "outcome": self.outcome,
            "result": self.result,
            "archived_at": self.archived_at,
            "capsule": {name: list(items) for name, items in self.capsule.items()} or None,
            "hosted": None if self.hosted is None else self.hosted.to_json(),
        }
        return {**self.unknown, **{name: value for name, value in fields.items() if value is not None}}


def unknown_keys(extra: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """What an entry stores besides the fields of its record."""
    return {name: value for name, value in extra.items() if name not in fields}


def open_tasks(ctx: Context) -> list[Entry]:
    """The open tasks, the innermost last."""
    page = ctx.store.entries.list(ctx.scope, Listing((TASK,), ctx.session, limit=limits.LIST_MAX))
    return sorted(page.entries, key=lambda entry: (TaskRecord.from_json(entry.extra).depth, entry.key))
