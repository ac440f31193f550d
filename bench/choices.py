"""Which tool a small real model takes: a hundred situations, with our tools and with those of 0.1.0, in the same run.

`situations.txt` was written before a model was asked. Wordings may be tried on its odd lines (`BENCH_HALF=odd`); what
is judged is the even ones. `model.py` says which model is asked; `BENCH_OLD` is a checkout of 0.1.0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import compare
from bench.measure import ROOT, Sizes, table, verdict
from bench.model import ABSENT, Model, call_schema, for_model, given, listing

SITUATIONS = Path(__file__).with_name("situations.txt")
SYSTEM = """You are a coding agent. You may call one of these functions to assist with the situation:
<tools>
{tools}
</tools>
Answer with one JSON object: the name of the function that fits best, and its arguments."""
POINTS = 10  # right tools in a hundred, above those of 0.1.0
PROFILES = ("coding", "full")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
# The tools that are right for a need, by the names of both versions. Some needs had no tool in 0.1.0.
RIGHT: Mapping[str, tuple[str, ...]] = {
    "finding": ("add_note", "log_decision"),
    "search": ("search_notes", "list_notes", "recall"),
    "correct": ("update_note",),
    "settled": ("update_note",),
    "unsaid": ("delete_note",),
    "plan": ("write_notepad",),
    "progress": ("update_notepad",),
    "reread": ("read_notepad",),
    "convention": ("write_memory",),
    "lookup": ("search_memory", "recall"),
    "forget": ("delete_memory",),
    "stop": ("write_session_handoff",),
    "begin": ("read_handoff", "recover_notes"),
    "lines": ("read_output", "scratchpad_read"),
    "ask": ("read_output", "scratchpad_read"),
    "match": ("read_output", "scratchpad_read"),
    "past": ("recall",),
}


class Situation(NamedTuple):
    number: int
    need: str
    text: str
    arguments: tuple[tuple[str, str, bool], ...]  # name, value, and whether it is the whole value


class Choice(NamedTuple):
    situation: Situation
    tool: str
    arguments: dict[str, Any]

    @property
    def right_tool(self) -> bool:
        return self.tool in RIGHT[self.situation.need]

    @property
    def right(self) -> bool:
        return self.right_tool and all(
            _fits(self.arguments.get(name), words, whole) for name, words, whole in self.wanted
        )

    @property
    def wanted(self) -> tuple[tuple[str, str, bool], ...]:
        return self.situation.arguments


class ToolSet(NamedTuple):
    version: str
    profile: str
    tools: list[dict[str, Any]]

    def can(self, need: str) -> bool:
        return any(tool["name"] in RIGHT[need] for tool in self.tools)


def run(sizes: Sizes) -> None:
    model, old = given(), os.environ.get("BENCH_OLD", "")
    if model is None:
        print(ABSENT)
        return
    half = os.environ.get("BENCH_HALF", "")
    asked = [one for one in situations() if half in ("", "odd" if one.number % 2 else "even")]
    asked = asked[:: sizes.pick(1, 10)]
    profiles = PROFILES[:1] if sizes.quick or half else PROFILES
    with model:
        for profile in profiles:
            sets = [ToolSet("0.2.0", profile, listed("limpet", ROOT / "src", profile))]
            if old:
                (package,) = (file.parent.name for file in Path(old, "src").glob("*/__init__.py"))
                sets.append(ToolSet("0.1.0", profile, listed(package, Path(old, "src"), profile)))
            results = [(one, list(choices(one.tools, asked, model))) for one in sets]
            _report(profile, results, details=half == "odd")
    if not old:
        print("\nNot measured: the tools of 0.1.0, because BENCH_OLD names no checkout of it.")


def situations() -> list[Situation]:
    lines = [line for line in SITUATIONS.read_text().splitlines() if line and not line.startswith("#")]
    found = []
    for number, line in enumerate(lines, 1):
        need, text, *arguments = (part.strip() for part in line.split("|"))
        found.append(Situation(number, need, text, _wanted(" ".join(arguments))))
    return found


def _wanted(arguments: str) -> tuple[tuple[str, str, bool], ...]:
    found: list[tuple[str, str, bool]] = []
    for word in arguments.split():
        mark = next((mark for mark in "~=" if mark in word), "")
        if mark:
            name, _, value = word.partition(mark)
            found.append((name, value, mark == "="))
        elif found:  # a value of several words
            name, value, whole = found[-1]
            found[-1] = (name, f"{value} {word}", whole)
    return tuple(found)


def _fits(value: object, wanted: str, whole: bool) -> bool:
    text = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).casefold()
    return value is not None and (text == wanted if whole else wanted.casefold() in text)


def listed(package: str, source: Path, profile: str) -> list[dict[str, Any]]:
    """The tools as the server of a checkout lists them."""
    messages = (
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "PYTHONPATH": str(source)}
        command = [sys.executable, "-m", package, "mcp", "--profile", profile]
        done = subprocess.run(
            command, input=lines, capture_output=True, text=True, cwd=folder, env=environment, check=True
        )
    replies = {reply["id"]: reply["result"] for reply in map(json.loads, done.stdout.splitlines())}
    tools: list[dict[str, Any]] = replies[2]["tools"]
    return tools


def choices(tools: Sequence[dict[str, Any]], asked: Sequence[Situation], model: Model) -> Iterator[Choice]:
    """What the model does in each situation. Which tool is first in the list is the same for all."""
    shown = [for_model(tool) for tool in tools]
    system = SYSTEM.format(tools=listing(shown))
    schema = {"anyOf": [call_schema(tool) for tool in shown]}
    for situation in asked:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": situation.text}]
        answer = model.ask(messages, schema).answer
        yield Choice(situation, str(answer.get("name")), answer.get("arguments") or {})


def _report(profile: str, results: list[tuple[ToolSet, list[Choice]]], *, details: bool) -> None:
    lines = []
    for tools, found in results:
        seen, unseen = ([one for one in found if one.situation.number % 2 == odd] for odd in (1, 0))
        both = [one for one in unseen if all(other.can(one.situation.need) for other, _ in results)]
        lines.append(
            [f"{tools.version}, {len(tools.tools)} tools", *map(_share, (seen, unseen, both)), *_right(seen, unseen)]
        )
    heads = (
        "tools of",
        "odd: right tool",
        "even: right tool",
        "even, if both have one",
        "odd: all right",
        "even: all right",
    )
    table(f"Profile {profile}: a small model chooses", heads, lines)
    if len(results) == 2 and not details:
        ours, theirs = (_rate([one for one in found if one.situation.number % 2 == 0]) for _, found in results)
        goal = verdict(theirs + POINTS, ours, f"at least {POINTS} points above 0.1.0")
        compare(f"right tool in a hundred, {profile}", ours, "0.1.0", theirs, goal, show="{:.0f}".format, better=" ↑")
    for tools, found in results if details else ():
        for one in found:
            if not one.right:
                what = "tool" if not one.right_tool else "arguments"
                print(
                    f"  {tools.version} {one.situation.number:3} {one.situation.need}: wrong {what}: "
                    f"{one.tool} {json.dumps(one.arguments, ensure_ascii=False)[:160]}"
                )


def _rate(found: Sequence[Choice]) -> float:
    return 100 * sum(one.right_tool for one in found) / max(len(found), 1)


def _share(found: Sequence[Choice]) -> str:
    return f"{_rate(found):.0f} % of {len(found)}" if found else "-"


def _right(*halves: Sequence[Choice]) -> list[str]:
    return [f"{100 * sum(one.right for one in half) / len(half):.0f} %" if half else "-" for half in halves]
