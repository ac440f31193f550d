"""What a model pays to read an answer: its tokens beside those of the texts in it, on notes of real texts.

Each answer is what an MCP client gets. Other servers are asked the same questions over the same texts; what is compared
with them is the tokens read for each text that was found.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import limpet
from bench import corpus
from bench.figures import compare
from bench.measure import Sizes, table, verdict
from bench.peers import roll
from bench.peers.sides import OverPipes, Peer, folder_for
from bench.stores import loaded, open_ours
from limpet.catalogue.table import find
from limpet.protocol.mcp_server import ClientState, Surface
from limpet.protocol.revisions import HANDSHAKE

NOTES_MOST, HITS_MOST, TOOLS_MOST, INSTRUCTIONS_MOST = 1.3, 1.4, 1_200, 150
COUNTS = (1_000, 10_000)
WEEKS = 8
KIND = "eight"  # words of a note, as an agent half remembers it


class Cost(NamedTuple):
    answers: float  # tokens, of all answers
    texts: float  # tokens, of the texts in them
    found: int  # questions whose note is in the answer
    asked: int

    @property
    def each(self) -> float:
        return self.answers / max(self.found, 1)


def run(sizes: Sizes) -> None:
    _surface()
    for count in (300,) if sizes.quick else COUNTS:
        _answers(count, sizes.pick(100, 20))
    if not sizes.peers:
        print("\nNot measured: other servers are fetched only when they are asked for (make bench PEERS=1).")
        return
    for count in (200,) if sizes.quick else COUNTS:
        _beside(count, sizes.pick(30, 6))


@cache
def _tokenizer() -> Any:
    import splintr  # late: a table of 200,000 tokens

    return splintr.Tokenizer.from_pretrained("o200k_base")


def count_tokens(text: str) -> int:
    return len(_tokenizer().encode(text))


# --- what stands in every request -------------------------------------------------------------------------------------


def _surface() -> None:
    ours, _ = loaded(300)
    lines = []
    with open_ours(ours) as hold:
        for profile in ("core", "coding", "full"):
            surface, client = Surface(hold, profile), ClientState(revision=HANDSHAKE[-1])
            listed: dict[str, Any] = surface.handler("tools/list", {}, HANDSHAKE[-1])({}, client, HANDSHAKE[-1])
            tools = count_tokens(json.dumps(listed, ensure_ascii=False, separators=(",", ":")))
            guidance = count_tokens(hold.guidance(profile))
            goals = ["", ""]
            if profile == "core":
                goals = [
                    verdict(tools, TOOLS_MOST, f"at most {TOOLS_MOST:,}"),
                    verdict(guidance, INSTRUCTIONS_MOST, f"at most {INSTRUCTIONS_MOST}"),
                ]
            lines.append([profile, str(len(listed["tools"])), f"{tools:,}", goals[0], f"{guidance:,}", goals[1]])
    table("In every request (tokens, o200k)", ("profile", "tools", "tools/list", "goal", "instructions", "goal"), lines)


# --- answers ----------------------------------------------------------------------------------------------------------


def _answers(count: int, asked: int) -> None:
    questions = corpus.questions(KIND, count, asked)
    lines = []
    with _written_over_weeks(count) as hold:
        for name, most in (("search_notes", NOTES_MOST), ("recall", HITS_MOST)):
            spent = texts = shown = before = 0
            for question in questions:
                # A tag alone, or every word, would find few of them: ten are wanted.
                query = question.words[0] if name == "search_notes" else question.text
                answer = hold.answer(find(name), {"query": query, "limit": 10}, None, "agent/bench")
                items = answer.values["hits"] if name == "recall" else answer.values["notes"]
                spent += count_tokens(answer)
                before += count_tokens(json.dumps(answer.values, ensure_ascii=False, separators=(",", ":")))
                texts += sum(count_tokens(_text(item)) for item in items)
                shown += len(items)
            ratio = spent / max(texts, 1)
            goal = verdict(ratio, most, f"at most {most}x")
            mean = f"{shown / len(questions):.1f}"
            lines.append(
                [name, mean, f"{texts:,}", f"{spent:,}", f"{ratio:.2f}x", goal, f"{before / max(texts, 1):.2f}x"]
            )
            compare(
                f"{name} at {count:,}: tokens of an answer",
                spent,
                "the texts in it",
                texts,
                goal,
                show="{:,.0f}".format,
            )
    heads = ("operation", "texts each", "tokens of the texts", "of the answers", "ratio", "goal", "as JSON")
    table(f"{asked} answers over {count:,} notes ({corpus.origin()})", heads, lines)


def _written_over_weeks(count: int) -> limpet.Limpet:
    """A store whose notes have different ages, as those of a project have."""
    path = folder_for(f"ages {count}") / "store.db"
    with limpet.open(str(path), session="bench", clock=count_up(count)) as hold:
        for note in corpus.notes(count):
            hold.call("add_note", {"content": note.content, "tags": note.tags})
    return limpet.open(str(path), session="bench")


def count_up(count: int) -> Callable[[], int]:
    """A clock for so many notes over eight weeks until now; a note asks it once or twice."""
    now = time.time_ns() // 1_000_000
    step = WEEKS * 7 * 86_400_000 // (2 * count)
    ticks = iter(range(now - 2 * count * step, now, step))
    return lambda: next(ticks, now)


def _text(item: dict[str, Any]) -> str:
    return str(item.get("content") or item["text"].replace("«", "").replace("»", ""))


# --- beside other servers ---------------------------------------------------------------------------------------------


def _beside(count: int, asked: int) -> None:
    texts = [f"[{at:06}] {note.content}" for at, note in enumerate(corpus.notes(count))]
    questions = corpus.questions(KIND, count, asked)
    context_mode = roll.context_mode()
    peers = [*roll.graphs(), *([context_mode] if context_mode else [])]
    costs = {peer.name: _asked(peer, texts, questions) for peer in (roll.server(), *peers)}
    mine = costs[roll.OURS_SERVED]
    lines = []
    for name, cost in costs.items():
        share = f"{cost.found / cost.asked:.0%}"
        each = f"{cost.each:,.0f}" if cost.found else "-"
        lines.append([name, share, f"{cost.answers / cost.asked:,.0f}", each])
        if name != roll.OURS_SERVED and cost.found:
            compare(
                f"tokens for each text found, {count:,}", mine.each, name, cost.each, show="{:,.0f}".format, peer=True
            )
    table(f"Searches over {count:,} texts with eight words each", ("who", "found", "tokens", "for each found"), lines)


def _asked(peer: Peer, texts: Sequence[str], questions: Sequence[corpus.Question]) -> Cost:
    side = peer.start(folder_for(f"answers {peer.name} {len(texts)}"), ())
    side.load(texts)
    answers: list[str] = []
    for number, question in enumerate(questions):
        if peer.once and number % peer.once == 0 and isinstance(side, OverPipes):
            side.again()
        ((_, answer),) = side.search([question.text])
        answers.append(answer)
    side.close()
    found = sum(f"[{question.source:06}]" in answer for question, answer in zip(questions, answers, strict=True))
    return Cost(sum(map(count_tokens, answers)), 0, found, len(questions))
