"""The process around a hook: whatever happens, the agent gets a valid answer in time and exit code 0.

A thread watches the time and ends the process at its limit, because standard input, a file system or a store may block
for longer than an agent should wait. Failures go to a log in the user's data folder, not to the agent. The process
exits without cleaning up: everything acknowledged is on disk, and tearing down an interpreter takes longer than many
hooks do.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from importlib import import_module

from limpet import clients, limits, settings
from limpet.clients.base import CodingAgent, HookAnswer, HookEvent, read
from limpet.doors.hooks.triage import TRIAGE, Hook, Outcome, chosen_action
from limpet.home.folders import Home
from limpet.home.load import load
from limpet.home.trust import tell_once
from limpet.light import Any, NoReturn, json

TELLING = 0.1  # the part of the time limit that is for the log and for telling the person
POLL_SECONDS = 0.05


class HookRun:
    """One run of a hook and its time limit."""

    def __init__(self, client: str | None, event: str) -> None:
        self.client = client
        self.event = event
        self.seconds = self._limit(settings.HookRules())  # until the settings are read, which may name another
        self.began = time.monotonic()
        self.problem = ""  # why there is no answer
        self.late = False
        self.received: HookEvent | None = None
        self.answering = allocate_lock()  # held by who gives the answer

    def _limit(self, rules: settings.HookRules) -> float:
        return min(rules.seconds, limits.HOOK_END_SECONDS) if self.event == "session-end" else rules.seconds

    def within(self, work: Callable[[], Any]) -> Any:
        """The result of the work in another thread, or None if it fails or is not done at the time limit."""
        results: list[Any] = []
        done = allocate_lock()
        done.acquire()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as problem:
                self.failed(problem)
            done.release()

        start_new_thread(run, ())
        done.acquire(timeout=max(self.seconds - (time.monotonic() - self.began), POLL_SECONDS))
        return results[0] if results else None

    def failed(self, problem: BaseException) -> None:
        self.problem = str(problem) or type(problem).__name__
        log(f"{self.client} {self.event}: {type(problem).__name__}: {problem}")

    def watch(self) -> NoReturn:
        """Answer in place of the work when it takes too long, and end the process at the time limit."""
        self._wait_for(1 - TELLING)
        if self.answering.acquire(blocking=False):
            self.late = True
            reply = self.within(self.trouble) or {}
            if not self._is_silent(reply):
                self.within(lambda: _written(reply))
            os._exit(0)
        self._wait_for(1.0)
        os._exit(0)

    def _wait_for(self, part: float) -> None:
        """Wait until this part of the time limit is over. The settings, once read, may name another limit."""
        while time.monotonic() - self.began <= self.seconds * part:
            time.sleep(POLL_SECONDS)

    def run(self) -> None:
        """Do the work and answer, unless the answer was given because the work took too long."""
        reply: dict[str, Any] = {}
        outcome = None
        try:
            try:
                reply, outcome = self.answer()
            except BaseException as problem:
                self.failed(problem)
                reply = self.trouble()
        except BaseException as problem:
            self.failed(problem)
        if not self.answering.acquire(blocking=False):
            time.sleep(self.seconds)  # the process ends meanwhile
        if (self._is_silent(reply) or _written(reply)) and outcome is not None and outcome.after is not None:
            try:
                outcome.after()
            except BaseException as problem:
                self.failed(problem)

    def _is_silent(self, reply: dict[str, Any]) -> bool:
        return not reply and self.event == "before-compact" and self.client in clients.SILENT_BEFORE_COMPACT

    def answer(self) -> tuple[dict[str, Any], Outcome]:
        """Read the event and act on it."""
        payload = _payload(sys.stdin.buffer.read(limits.HOOK_INPUT_BYTES + 1))
        from_plugin = self.client is None and clients.run_by_plugin()
        client = clients.detect(payload) if self.client is None else clients.find(self.client)
        self.client = client.name
        self._check_names()
        event = self.received = read(client, self.event, payload)
        chosen = load(folder=event.folder or None)
        rules = chosen.bounds.hooks
        self.seconds = self._limit(rules)
        if not rules.enabled or client.name in rules.off_clients or (from_plugin and _has_hooks(client, chosen.root)):
            return {}, Outcome()
        if clients.runs_for_another(client, event.session):
            return {}, Outcome()  # it would not pass our answer on, so nothing may be used up
        outcome = _act(Hook(event, chosen))
        message = _remarks(chosen.remarks) if event.name == "session-start" and client.takes_messages else ""
        return client.write(event, outcome.answer._replace(message=message)), outcome

    def _check_names(self) -> None:
        """A mistake in the command line: an unknown event is an error; an unknown client speaks the plain dialect."""
        if self.event not in TRIAGE:
            raise ValueError(f"{self.event!r} is no event. {_nearest(self.event, tuple(TRIAGE))}")
        if self.client and self.client not in clients.names():
            advice = _nearest(self.client, clients.names())
            log(f"{self.client} {self.event}: {self.client!r} is no client that Limpet knows. {advice}")

    def trouble(self) -> dict[str, Any]:
        """The answer after a failure: why it failed, once per session, for agents that show it to the person."""
        if self.late:
            self.problem = f"gave up after {self.seconds:g} seconds"
            log(f"{self.client} {self.event}: {self.problem}")
        event = self.received
        if event is None or event.name not in TRIAGE or not event.client.takes_messages:
            return {}
        is_first = tell_once(Home(settings.data_folder()), f"trouble {event.client.name} {event.session}")
        if not (is_first if is_first is not None else event.name == "session-start"):
            return {}
        text = f"A hook of Limpet failed in this session: {self.problem}. `limpet doctor` says more."
        return event.client.write(event, HookAnswer(message=text.replace("..", ".")))


def main(client: str | None, event: str) -> NoReturn:
    job = HookRun(client, event)
    start_new_thread(job.watch, ())
    job.run()
    os._exit(0)


def log(line: str) -> None:
    """Add a line to the log. A failure to do so is ignored: there is no other place to report it."""
    try:
        folder = settings.data_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "hooks.log")
        handle = _log_file(path)
        if os.fstat(handle).st_size > limits.HOOK_LOG_BYTES:
            put_aside(path, handle)
            os.close(handle)
            handle = _log_file(path)
        try:
            text = " ".join(line.split())[:1_000]
            os.write(handle, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n".encode(errors="replace"))
        finally:
            os.close(handle)
    except OSError:
        return


def _log_file(path: str) -> int:
    # Not to wait for the reader of a pipe.
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def put_aside(path: str, handle: int) -> None:
    """Rename the log, unless another process has just done so: then a new one would take the place of the old."""
    here = import_module("limpet.platform").here  # late: a full log is rare
    if here.try_lock(handle) and os.path.samestat(os.stat(path), os.fstat(handle)):
        os.replace(path, f"{path}.old")


def _nearest(name: str, names: tuple[str, ...]) -> str:
    """The names most like a mistaken one, or all of them."""
    near = import_module("difflib").get_close_matches(name, names)  # late: mistakes are rare
    return f"Did you mean {' or '.join(near)}?" if near else f"Choose one of {', '.join(names)}."


def _remarks(remarks: tuple[str, ...]) -> str:
    """Those that this person has not seen yet."""
    home = Home(settings.data_folder())
    return " ".join(f"Limpet: {remark}" for remark in remarks if tell_once(home, remark))


def _act(hook: Hook) -> Outcome:
    outcome = Outcome(next_action=chosen_action(hook))
    while outcome.next_action:
        # Imported now: most hooks have nothing to do.
        outcome = getattr(import_module("limpet.doors.hooks.actions"), outcome.next_action)(hook)
    return outcome


def _has_hooks(client: CodingAgent, root: str) -> bool:
    """Whether installed hooks answer too; then those of the plugin are silent."""
    edits = import_module("limpet.clients.edits")  # only the hooks of a plugin need it
    return bool(edits.has_hooks(client, root, os.path.expanduser("~")))


def _payload(content: bytes) -> dict[str, Any]:
    if len(content) > limits.HOOK_INPUT_BYTES:
        raise ValueError(f"the event has more than {limits.HOOK_INPUT_BYTES} bytes")
    payload = json.loads(content)
    if not isinstance(payload, dict):
        raise TypeError("the event is not a JSON object")
    return payload


def _written(reply: dict[str, Any]) -> bool:
    """Whether the agent has the reply; `after` relies on that."""
    try:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError) as problem:
        log(f"the answer was not taken: {problem}")
        return False
    return True
