"""What other tools' compaction keeps of the conversation that Limpet's run had, with the same summariser for all.

Each peer is driven by a script in its own environment: it gets the conversation in ten parts, compacts after each, and
answers with its window. When to compact is not compared: all do it at the same messages, and none has to fit the window
in between. The room is the same: as much of the recent messages as ours keeps, and a summary as big as the rest of what
our compaction may leave. Where a setting would make a peer keep less than it could, it is set in the peer's favour.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

import limpet
from bench.figures import MORE, compare, remark
from bench.measure import OUT, ROOT, table
from bench.peers import script
from bench.peers.environment import prepared
from bench.peers.script import Job, Said
from journeys.survival import Run, found
from limpet.settings import WindowRules
from limpet.text import tokens
from limpet.window.formats import FORMS
from limpet.window.messages import Message
from limpet.window.plan.controller import Compact
from limpet.window.plan.facts import words

RULES = WindowRules()


class Peer(NamedTuple):
    package: str
    driver: str
    form: str  # in which it gets the messages
    pins: bool = False


PEERS = (
    Peer("langchain", "drive_langchain", "openai_chat"),
    Peer("pydantic-ai-harness", "drive_pydantic", "openai_chat", pins=True),
    Peer("openai-agents", "drive_openai", "openai_responses"),
)
HEADS = (
    "keeper",
    "summariser",
    "tokens after",
    "in the window",
    "never noted",
    "in it or one recall away",
    "rules word for word",
    "last request",
    "pin",
)


def run(story: Run) -> None:
    lines = [_row("Limpet", "its own", story, _windows(story), f"{story.count().kept:.0%}")]
    lines += [_ours(story, style) for style in script.STYLES]
    mine = {line[1]: line for line in lines}
    for peer in PEERS:
        for line in _theirs(story, peer):
            _beside(mine.get(line[1], lines[0]), line)
            lines.append(line)
    table("Other tools' compaction of the same conversation, after the tenth", HEADS, lines)
    print("\n`never noted`: of the items that were not written to the notepad either. `last request`: after how many")
    print("compactions it stood there word for word. `no search`: what was measured has none over what it dropped.")


def _beside(ours: list[str], theirs: list[str]) -> None:
    """With the same summariser; ours with its own beside a peer that has none."""
    here, there = (float(line[3].rstrip("%")) / 100 for line in (ours, theirs))
    what = f"items in the window after ten, summariser: {theirs[1]}"
    compare(what, here, theirs[0], there, show="{:.0%}".format, better=MORE, peer=True)
    asked = [float(line[7].partition(" ")[0]) for line in (ours, theirs)]
    what = f"compactions with the last request word for word, of ten, summariser: {theirs[1]}"
    compare(what, asked[0], theirs[0], asked[1], show="{:.0f}".format, better=MORE, peer=True)


def _ours(story: Run, style: str) -> list[str]:
    """The same run of ours with the summariser of the peers, which has the room it has with them."""
    given = _job(story, style)

    def summarise(messages: list[Message]) -> str:
        return script.summarise("", _said(messages), given)

    with limpet.open(str(OUT / "peers.db"), project="bench", session=style) as hold:
        again = Run(hold.session(), limit=story.limit, items=len(story.planted), summarise=summarise)
        again.compactions(len(story.cuts))
        return _row("Limpet", style, again, _windows(again), f"{again.count().kept:.0%}")


def _theirs(story: Run, peer: Peer) -> list[list[str]]:
    there = prepared(peer.package)
    if there is None:
        return []
    lines = []
    for style in script.STYLES:
        given = _job(story, style, peer.form)
        done = subprocess.run(
            [str(there.python), "-m", f"bench.peers.{peer.driver}"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            input=json.dumps(given._asdict()),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            remark(f"{peer.package} {there.version}: skipped, {' '.join(done.stderr.strip().splitlines()[-1:])}")
            return []
        for way, windows in json.loads(done.stdout).items():
            shown = [[Said(*one) for one in window] for window in windows]
            name, said = f"{peer.package} {there.version} {way}", "none" if way == "trimming" else style
            row = _row(name, said, story, shown, "no search")
            if not peer.pins:
                row[-1] = "has none"
            lines += [row] if row not in lines else []  # what needs no summariser is the same with each
    return lines


def _job(story: Run, style: str, form: str = "openai_chat") -> Job:
    begins = [0, *story.cuts[:-1]]
    parts = [FORMS[form].write(story.talk[at:to]) for at, to in zip(begins, story.cuts, strict=True)]
    tail = story.limit * RULES.tail_percent // 100
    return Job(parts, story.pin, style, tail, story.limit * RULES.target_percent // 100 - tail)


def _windows(story: Run) -> list[list[Said]]:
    return [_said(step.messages) for step in story.steps if isinstance(step, Compact)]


def _said(messages: Sequence[Message]) -> list[Said]:
    return [Said(message.role, words([message])) for message in messages]


def _row(name: str, style: str, story: Run, windows: Sequence[Sequence[Said]], kept: str) -> list[str]:
    last = windows[-1]
    window = "\n".join(one.text for one in last if one.role != "tool")
    here = found(story.planted, window)
    alone = [item for item in story.planted if not item.noted]
    rules = [item for item in story.planted if item.kind == "rule"]
    asked = [next(m.text() for m in reversed(story.talk[:cut]) if m.role == "user") for cut in story.cuts]
    held = sum(Said("user", text) in shown for text, shown in zip(asked, windows, strict=True))
    return [
        name,
        style,
        f"{tokens.count(chr(10).join(one.text for one in last)):,}",
        f"{len(here) / len(story.planted):.0%}",
        f"{len([item for item in here if item in alone]) / len(alone):.0%}",
        kept,
        f"{sum(item.text in window for item in rules) / len(rules):.0%}",
        f"{held} of {len(windows)}",
        "yes" if story.pin in window else "no",
    ]
