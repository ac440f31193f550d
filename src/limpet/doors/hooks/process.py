"""The process around a hook: whatever happens, the client gets a valid answer in time and exit code 0.

The work is done in a thread, because a store may make it wait for longer than an agent should. What goes wrong becomes
a line in a log in the user's data folder and never a word to the agent. The process ends without tidying up: all that
was acknowledged is on disk, and taking an interpreter apart takes longer than many hooks do.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from limpet import limits

if TYPE_CHECKING:
    from limpet.catalogue.operation import Context
    from limpet.doors.hooks.events import Done
    from limpet.settings import Settings

START_SECONDS = 15.0  # until the event and the settings are read, which say how long it may take
TICK = 0.05  # seconds between two looks at that


class Job:
    """One hook: its answer when it is there, and how long it may take."""

    def __init__(self, client: str | None, event: str) -> None:
        self.client = client
        self.event = event
        self.seconds = START_SECONDS
        self.began = time.monotonic()

    def within(self, work: Callable[[], Any]) -> Any:
        """What the work gives, or None when it fails or is not done in time."""
        found: list[Any] = []
        done = threading.Event()

        def run() -> None:
            try:
                found.append(work())
            except BaseException as problem:
                log(f"{self.client} {self.event}: {type(problem).__name__}: {problem}")
            done.set()

        threading.Thread(target=run, daemon=True).start()
        while not done.wait(TICK):
            if time.monotonic() - self.began > self.seconds:
                log(f"{self.client} {self.event}: gave up after {self.seconds:g} seconds")
                return None
        return found[0] if found else None

    def answer(self) -> tuple[dict[str, Any], Done]:
        """Read the event and do what it asks for."""
        from limpet import settings
        from limpet.clients import dialects

        payload = _payload(sys.stdin.buffer.read(limits.HOOK_INPUT_BYTES + 1))
        by_plugin = self.client is None and settings.by_plugin()
        self.client = self.client or dialects.detect(payload, settings.coding_agent())
        event = dialects.read(self.client, self.event, payload)
        chosen = settings.load(folder=event.folder or None)
        hooks = chosen.bounds.hooks
        self.seconds = min(hooks.seconds, limits.HOOK_END_SECONDS) if event.name == "session-end" else hooks.seconds
        from limpet.doors.hooks import events

        if not hooks.enabled or event.client in hooks.off_clients:
            return {}, events.NOTHING
        if by_plugin:
            from limpet.clients.plugin import hooks_beside

            if hooks_beside(event.client, chosen.root, os.path.expanduser("~")):
                return {}, events.NOTHING  # the installed ones answer; twice would be once too often
        found = events.EVENTS[event.name](events.Call(event, chosen, *_store(chosen, event.session)))
        return dialects.write(event, found.answer), found


def main(client: str | None, event: str) -> NoReturn:
    job = Job(client, event)
    found = job.within(job.answer)
    answer, done = found if found is not None else ({}, None)
    if _written(answer) and done is not None and done.after is not None:
        job.within(done.after)
    os._exit(0)


def log(line: str) -> None:
    """Add a line to the log. Where that cannot be done there is nobody left to tell."""
    from limpet.settings import data_folder

    try:
        folder = data_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "hooks.log")
        if os.path.exists(path) and os.path.getsize(path) > limits.HOOK_LOG_BYTES:
            os.replace(path, f"{path}.old")
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            told = " ".join(line.split())[:1_000]
            os.write(handle, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {told}\n".encode(errors="replace"))
        finally:
            os.close(handle)
    except OSError:
        return


def _payload(content: bytes) -> dict[str, Any]:
    if len(content) > limits.HOOK_INPUT_BYTES:
        raise ValueError(f"the event has more than {limits.HOOK_INPUT_BYTES} bytes")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise TypeError("the event is not a JSON object")
    return found


def _written(answer: dict[str, Any]) -> bool:
    """Whether the client has it: what follows is only true if it has."""
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError) as problem:
        log(f"the answer was not taken: {problem}")
        return False
    return True


def _store(chosen: Settings, session: str) -> tuple[Callable[[], Context], Callable[[], bool]]:
    """How the store is opened, once, and whether there is one: a hook that only reads does not make a new one."""
    made: list[Context] = []

    def opened() -> Context:
        if not made:
            from limpet import wiring
            from limpet.catalogue.check import a_name
            from limpet.catalogue.operation import Context
            from limpet.doors.hooks.events import BY
            from limpet.model import Scope

            name = a_name("session_id", session or chosen.session or "hooks", limits.SESSION_MAX_CHARS)
            store = wiring.choose_store(chosen.store)
            scope = Scope(chosen.tenant, chosen.project)
            now = time.time_ns() // 1_000_000
            made.append(Context(store, scope, name, BY, now, chosen.bounds, chosen.skills, chosen.root))
        return made[0]

    def known() -> bool:
        return "://" in chosen.store or os.path.exists(chosen.store)

    return opened, known
