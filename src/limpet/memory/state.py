"""State: JSON values by key that an agent keeps for the whole project, outside the window until it reads one."""

from __future__ import annotations

import json
from typing import Any

from limpet import errors, limits
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, trust_json
from limpet.model import STATE, Draft, Entry, iso
from limpet.record import NamedTuple
from limpet.store import DELETE, Delete, Listing, to_json
from limpet.text import brief
from limpet.text.safe import as_data, as_name

LIST = 'agent_state with action "keys" lists those that exist.'
USES = {"get": {"key"}, "set": {"key", "value", "expected_version"}, "delete": {"key"}, "keys": {"prefix"}}


class Value(NamedTuple):
    key: str
    value: Any  # JSON
    version: int
    updated_at: int
    origin: str


class StateVersion(NamedTuple):
    key: str
    version: int


class StateKeys(NamedTuple):
    keys: tuple[str, ...]
    left_out: int  # the oldest ones, which were not read


def agent_state(
    ctx: Context,
    action: str,
    key: str | None = None,
    value: Any = None,
    prefix: str | None = None,
    expected_version: int | None = None,
) -> Value | StateVersion | StateKeys:
    """Get, set or delete the value of a key, or list the keys."""
    arguments = {"key": key, "value": value, "prefix": prefix, "expected_version": expected_version}
    for name, argument in arguments.items():
        if argument is not None and argument != "" and name not in USES[action]:  # models fill in every argument
            raise errors.not_used("agent_state", f"action {action}", name)
    if action == "keys":
        return _keys(ctx, prefix or "")
    if key is None:
        raise errors.needs("agent_state", f"action {action}", "key")
    name = a_name("key", key, limits.KEY_MAX_CHARS)
    if action == "get":
        return _get(ctx, name)
    if action == "delete":
        return _delete(ctx, name)
    if value is None:
        raise errors.needs("agent_state", "action set", "value (anything but null; action delete forgets a key)")
    return _set(ctx, name, value, expected_version)


def _get(ctx: Context, key: str) -> Value:
    entry = ctx.store.entries.read(ctx.scope, STATE, key)
    if entry is None:
        raise errors.no_entry("state", key, LIST)
    return Value(key, json.loads(entry.content), entry.version, entry.updated_at, entry.origin)


def _set(ctx: Context, key: str, value: Any, expected_version: int | None) -> StateVersion:
    content = bounded("value", to_json(value), limits.STATE_MAX_CHARS, "Keep what is large as an output or in a file.")

    def decide(before: Entry | None) -> Draft:
        version = before.version if before else 0
        if expected_version is not None and expected_version != version:
            raise errors.version_moved("state", expected_version, version)
        return Draft(content, anew=True)

    return StateVersion(
        key, ctx.store.entries.edit(ctx.scope, STATE, key, decide, ctx.stamp("agent_state")).entry.version
    )


def _delete(ctx: Context, key: str) -> StateVersion:
    def decide(before: Entry | None) -> Delete:
        if before is None:
            raise errors.no_entry("state", key, LIST)
        return DELETE

    return StateVersion(
        key, ctx.store.entries.edit(ctx.scope, STATE, key, decide, ctx.stamp("agent_state")).entry.version
    )


def _keys(ctx: Context, prefix: str) -> StateKeys:
    page = ctx.store.entries.list(ctx.scope, Listing((STATE,), limit=limits.LIST_MAX))
    keys = sorted(entry.key for entry in page.entries if entry.key.startswith(prefix))
    return StateKeys(tuple(keys), page.total - len(page.entries))


# --- answers ----------------------------------------------------------------------------------------------------------


def answer_json(value: Value | StateVersion | StateKeys) -> Json:
    if isinstance(value, Value):
        return {
            "ok": True,
            "key": value.key,
            "value": value.value,
            "version": value.version,
            "updated_at": iso(value.updated_at),
            **trust_json(value.origin),
        }
    if isinstance(value, StateVersion):
        return {"ok": True, "key": value.key, "version": value.version}
    answer: Json = {"ok": True, "keys": list(value.keys)}
    return answer | ({"left_out": value.left_out} if value.left_out else {})


def answer_text(_ctx: Context, value: Value | StateVersion | StateKeys) -> str:
    if isinstance(value, Value):
        written = json.dumps(value.value, ensure_ascii=False)
        return f"{as_data(written, value.origin)}\n[version {value.version}]"
    if isinstance(value, StateVersion):
        return f"{as_name(value.key)} is at version {value.version}."
    left_out = f", {value.left_out:,} not shown: give a prefix" if value.left_out else ""
    count = len(value.keys) + value.left_out
    return brief.lines(map(as_name, value.keys), f"{brief.counted(count, 'key')}{left_out}.")


class ProjectState:
    """`session.state`: JSON values by key, for the whole project."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def get(self, key: str) -> Any:
        answer = self._session.do(agent_state, action="get", key=key)
        return answer.value if isinstance(answer, Value) else None

    def set(self, key: str, value: Any, *, expected_version: int | None = None) -> int:
        """Its version."""
        answer = self._session.do(agent_state, action="set", key=key, value=value, expected_version=expected_version)
        return answer.version if isinstance(answer, StateVersion) else 0

    def delete(self, key: str) -> None:
        self._session.do(agent_state, action="delete", key=key)

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        answer = self._session.do(agent_state, action="keys", prefix=prefix)
        return answer.keys if isinstance(answer, StateKeys) else ()
