"""The reference loop: a model, its tools and a session, run until the work is done.

It shows what the window needs of a loop (three calls), and is enough for real work: big results are stored as outputs,
the window is compacted after a warning, tasks fold, and sub-sessions run in parallel and within limits. A model is any
callable that takes messages and tools and returns a message; this module knows no provider.

    agent = Agent(session, model, tools=[search], system="You port parsers.")
    print(agent.run("Port the lexer.").text)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from limpet import errors, limits, prompts
from limpet.api import Limpet, Session, Tool
from limpet.catalogue.table import OWN_WINDOW, WITH_WINDOW, guidance
from limpet.errors import LimpetError
from limpet.record import NamedTuple
from limpet.session import tree
from limpet.text import tokens
from limpet.window import window
from limpet.window.messages import TOOL, Call, Message, Result, system, user
from limpet.window.plan.controller import Compact, Step, TooBig, Warn
from limpet.window.sections import CallerSections
from limpet.window.step import Summarise

COMPLETED, FAILED = tree.COMPLETED, tree.FAILED
OUT_OF_TOKENS, CANCELLED = tree.OUT_OF_TOKENS, tree.CANCELLED
OUT_OF_STEPS, OUT_OF_TIME = "step_limit_reached", "time_limit_reached"
PROFILE = "core"  # with the tools about the window: what a small window has room for
WAIT_SECONDS = 0.05  # between checks for a cancellation


class Reply(NamedTuple):
    """The answer of a model, with the provider's token counts if there are any."""

    message: Message
    used: int | None = None  # tokens of the request
    made: int | None = None  # tokens of the answer


Model = Callable[[Sequence[Message], Sequence[Tool]], Reply | Message]


class Ended(NamedTuple):
    """How a run ended; `text` is the last text of the model, or what went wrong."""

    text: str
    outcome: str
    steps: int
    tokens: int


class Limits(NamedTuple):
    """The limits of a run."""

    window: int | None = None  # tokens per request; None: as in the settings
    tokens: int | None = None  # of all requests and answers
    seconds: float | None = None
    steps: int = limits.AGENT_STEPS_MAX


class Agent:
    """Runs a session. One run at a time; `cancel` may be called from any thread."""

    def __init__(  # noqa: PLR0913 - what a loop is made of
        self,
        session: Session,
        model: Model,
        *,
        tools: Sequence[Tool] = (),
        profile: str = PROFILE,
        system: str = "",
        bounds: Limits | None = None,
        models: Mapping[str, Model] | None = None,
        summarise: Summarise | None = None,
        checkpoints: bool = False,
    ) -> None:
        self.session = session
        self.model = model
        self.models = dict(models or {})
        self.system = system
        self.bounds = bounds or Limits()
        self.summarise = summarise
        self.checkpoints = checkpoints  # in the project's journal, at each compaction and at the end
        self.own_tools = tuple(tools)
        self.profile = profile  # Limpet's tools; "agent" has those for sub-sessions too, at four times the tokens
        self.tools = _all_tools(session, profile, self.own_tools)
        self.guidance = guidance(tool.name for tool in self.tools if tool not in self.own_tools)
        self.children: dict[str, Child] = {}
        self._messages: list[Message] | None = None
        self._cancelled = threading.Event()
        self._ended: str | None = None  # the text of report_result, which ends the run
        self._tokens = 0

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- running ------------------------------------------------------------------------------------------------------

    def run(self, request: str, history: Sequence[Message] = ()) -> Ended:
        """Work on a request until the model answers without a tool call. An earlier session continues."""
        if self._messages is None:
            self._messages = [*(history or self.session.window.messages())]
        if self._messages[-1:] != [user(request)]:  # the same again: the model failed before it answered
            self._messages.append(user(request))
        until = None if self.bounds.seconds is None else time.monotonic() + self.bounds.seconds
        steps, text, answer = 0, "", ""
        while True:
            if outcome := self._stopped(steps, until):
                return self._end(text, outcome, steps)
            step = self._next()
            if isinstance(step, TooBig):
                return self._end(step.advice, FAILED, steps)
            # A model that is warned in the middle of its work may reply that it has saved what it needs, and is asked
            # again after the compaction. One that is warned with a request answers it.
            is_pause = isinstance(step, Warn) and self._messages[-1].role == TOOL
            reply = self._ask(step, is_last=isinstance(step, Warn) and not is_pause)
            steps += 1
            text = reply.text() or text
            self._answer_all(reply.calls())
            if self._ended is not None:
                return self._end(self._ended, COMPLETED, steps)
            answer = "" if reply.calls() else "\n\n".join(filter(None, (answer, reply.text())))
            if not reply.calls() and not is_pause:
                return self._end(answer or text, COMPLETED, steps)

    def cancel(self) -> None:
        """Stop before the next step, and the children too."""
        self._cancelled.set()
        for child in self.children.values():
            child.agent.cancel()

    def close(self) -> None:
        """Cancel the running children, and wait for them."""
        for child in self.children.values():
            child.agent.cancel()
        for child in self.children.values():
            child.thread.join()

    # --- a step -------------------------------------------------------------------------------------------------------

    def _stopped(self, steps: int, until: float | None) -> str:
        if self._cancelled.is_set():
            return CANCELLED
        if self.bounds.tokens is not None and self._tokens >= self.bounds.tokens:
            return OUT_OF_TOKENS
        if until is not None and time.monotonic() >= until:
            return OUT_OF_TIME
        return OUT_OF_STEPS if steps >= self.bounds.steps else ""

    def _end(self, text: str, outcome: str, steps: int) -> Ended:
        self.session.window.keep(self._messages or ())
        self._checkpoint(text or outcome)
        return Ended(text, outcome, steps, self._tokens)

    def _next(self) -> Step:
        prompt = [system(self.system)] if self.system else []
        step = self.session.window.next(
            [*prompt, *(self._messages or [])],
            limit=self.bounds.window,
            given=CallerSections(tools=self.guidance),
            summarise=self.summarise,
            shorten=True,
            tools=self.tools,
        )
        if isinstance(step, Compact):
            self._checkpoint(f"The window was compacted after {step.folded} messages.")
        return step

    def _ask(self, step: Step, *, is_last: bool) -> Message:
        """The model's reply, which is stored before its calls run: they may have effects, and a process may die.

        `is_last`: the last message is a warning, and a reply without a call ends the run all the same.
        """
        window, messages = self.session.window, self._messages or []
        sent = step.messages
        if is_last:
            sent = (*sent[:-1], user(f"{sent[-1].text()}\n{prompts.prompt('warning_ends')}"))
        answer = self.model(sent, self.tools)
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        window.sent(reply.used)
        answer_tokens = tokens.count(reply.message.text()) if reply.made is None else reply.made
        self._tokens += answer_tokens + (step.gauge.used if reply.used is None else reply.used)
        messages.append(reply.message)
        if reply.message.calls():
            window.keep(messages)
        return reply.message

    def _checkpoint(self, summary: str) -> None:
        """Add a row to the journal's log, if `checkpoints` is set. An error of the journal does not stop the run."""
        if self.checkpoints:
            with suppress(LimpetError):
                self.session.journal.checkpoint(" ".join(summary.split())[: limits.JOURNAL_FIELD_MAX_CHARS])

    # --- calls --------------------------------------------------------------------------------------------------------

    def _answer_all(self, calls: Sequence[Call]) -> None:
        """Run the calls of a reply. Each result is stored before the next call runs, in which the process may die."""
        messages = self._messages or []
        for number, call in enumerate(calls, 1):
            messages.append(Message(TOOL, (self._answer(call),)))
            if number < len(calls):
                self.session.window.keep(messages)

    def _answer(self, call: Call) -> Result:
        return window.answer_call(call, lambda arguments: self._do(call.name, arguments, call.arguments))

    def _do(self, name: str, arguments: dict[str, Any], call: str) -> str:
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise errors.unknown_operation(name, f"Tools that exist: {', '.join(tool.name for tool in self.tools)}.")
        if name == "wait_for_sessions":
            self._wait(arguments)
        if tool in self.own_tools:  # Limpet's own take references as they are
            arguments = self.session.outputs.expanded(arguments)
        answer: Any = tool.handler(arguments)
        if name in ("spawn_session", "fork_session"):
            self._start(answer.values["id"], arguments)
        if name == "report_result":
            self._ended = str(arguments.get("result", ""))
        text = window.as_text(answer)
        if tool in self.own_tools:  # Limpet's tools have limits of their own
            return self.session.outputs.keep(name, text, call=call).text
        return text

    # --- children -----------------------------------------------------------------------------------------------------

    def _start(self, id: str, arguments: Mapping[str, Any]) -> None:
        """Run a child in its own thread, with this agent's tools and limits."""
        name = arguments.get("model") or ""
        bounds = self.bounds._replace(tokens=arguments.get("token_limit") or self.bounds.tokens)
        agent = Agent(
            Session(self.session.hold, id, self.session.by),
            self.models.get(name, self.model),
            tools=self.own_tools,
            profile=self.profile,
            system=self.system,
            bounds=bounds,
            models=self.models,
            summarise=self.summarise,
        )  # without checkpoints: the journal is for the work of the first agent
        thread = threading.Thread(target=_run_child, args=(agent, arguments["task"]), daemon=True)
        self.children[id] = Child(agent, thread)
        thread.start()

    def _wait(self, arguments: dict[str, Any]) -> None:
        """Wait until the children have ended, at most for the given time."""
        seconds = arguments.pop("seconds", None)
        until = None if seconds is None else time.monotonic() + seconds
        for id in arguments.get("ids") or ():
            child = self.children.get(id)
            while child is not None and child.thread.is_alive() and not self._cancelled.is_set():
                if until is not None and time.monotonic() >= until:
                    return
                child.thread.join(WAIT_SECONDS)


class Child(NamedTuple):
    agent: Agent
    thread: threading.Thread


def _run_child(agent: Agent, task: str) -> None:
    """Run a child and record how it ended, also if it fails."""
    hold: Limpet = agent.session.hold
    outcome, text = FAILED, "it ended without a word"
    try:
        ended = agent.run(task)
        outcome, text = ended.outcome, ended.text
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}"
    finally:
        agent.close()
        if outcome in (OUT_OF_STEPS, OUT_OF_TIME):
            outcome, text = FAILED, f"{outcome}; the last it said: {text}"
        with suppress(errors.Conflict):  # it has reported already
            hold.end(agent.session.id, outcome, text[: limits.RESULT_MAX_CHARS])


def _all_tools(session: Session, profile: str, own: Sequence[Tool]) -> tuple[Tool, ...]:
    ours = session.tools(profile, also=(*WITH_WINDOW, *OWN_WINDOW))
    names = {tool.name for tool in ours}
    for tool in own:
        if tool.name in names:
            raise errors.bad_name("tool", tool.name, "Limpet or another tool has this name")
        names.add(tool.name)
    return (*ours, *own)
