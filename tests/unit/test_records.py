"""Stored records: the JSON that is in a store comes back as it was, also keys that no record names."""

from __future__ import annotations

from typing import Any

import pytest

from limpet.session.records import HookState, SessionRecord, TaskRecord
from limpet.window.transcript import FoldRecord, MessageRecord

STORED: tuple[tuple[Any, dict[str, Any]], ...] = (
    (MessageRecord, {"role": "user", "digest": "ab", "tokens": 3, "body": "{}"}),
    (MessageRecord, {"role": "user", "digest": "ab", "tokens": 3, "body": "{}", "sources": ["tool"]}),
    (FoldRecord, {"how": "rewind", "first": 4, "last": 9}),
    (FoldRecord, {"how": "warn", "first": 4, "last": 4, "limit": 6_000}),
    (FoldRecord, {"how": "clear", "first": 0, "last": 9, "lines": {"3 call_1": "[Cleared]"}}),
    (FoldRecord, {"how": "clear", "first": 0, "last": 9, "lines": {}}),
    (
        FoldRecord,
        {
            "how": "compact",
            "first": 0,
            "last": 9,
            "facts": {"rules": ["never push"]},
            "score": 0.5,
            "missing": ["PAR-118"],
            "before": 4_000,
            "after": 900,
            "limit": 6_000,
            "shown": [[2, 3], [7, 7]],
            "later": {"version": 9},
        },
    ),
    (TaskRecord, {"state": "open", "depth": 1, "first": 4}),
    (
        TaskRecord,
        {"state": "ended", "depth": 2, "first": 4, "outcome": "done", "last": 9, "ledger": "", "ended_at": 7, "x": 1},
    ),
    (HookState, {"restore": True, "checkpoint": "text", "source": "tool", "at": 5, "pad": 2}),
    (SessionRecord, {}),
    (SessionRecord, {"depth": 1, "forked": True, "model": "small", "token_limit": 9_000, "children": ["sub_1"]}),
    (
        SessionRecord,
        {"notes": ["note_1"], "references": ["ab"], "outcome": "completed", "result": "", "archived_at": 5},
    ),
    (SessionRecord, {"hosted": HookState(pad=3).to_json(), "imported": "ab"}),
)


@pytest.mark.parametrize(("record", "stored"), STORED)
def test_a_stored_record_comes_back_as_it_was(record: Any, stored: dict[str, Any]) -> None:
    assert record.from_json(stored).to_json() == stored


def test_visible_ranges_of_a_fold_are_joined() -> None:
    fold = FoldRecord("compact", 0, 20).with_shown(3, 4).with_shown(9, 9)
    assert fold.with_shown(5, 7).shown == ((3, 7), (9, 9))
    assert fold.with_shown(2, 12).shown == ((2, 12),)


def test_a_task_that_was_brought_back_folds_nothing() -> None:
    task = TaskRecord("ended", 1, 4, "done", 9)
    assert task.is_folded
    assert not task.unfolded().is_folded
    assert not TaskRecord("open", 1, 4).is_folded
