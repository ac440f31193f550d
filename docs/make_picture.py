"""Write docs/plots/compaction.svg: a real session before and after a compaction, with the texts and counts that it had.

The session is played here, through the library. Its pins, notepad and counts are in the picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

import limpet
from limpet import Compact, assistant, user
from limpet.window.plan.controller import Step

PICTURE = Path(__file__).parent / "plots" / "compaction.svg"
LIMIT = 16_000
WIDTH, HEIGHT, COLUMN, GAP = 842, 352, 400, 40
STYLE = """
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #24292f }
  .head { font: 600 16px system-ui, sans-serif } .sub, .dim { fill: #57606a } .sub { font: 13px system-ui, sans-serif }
  .card { fill: #f6f8fa; stroke: #d0d7de } .gone { fill: #ffebe9 } .kept { fill: #dafbe1 } .full { fill: #cf222e }
  .free { fill: #2da44e } .rail { fill: #eaeef2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .sub, .dim { fill: #9198a1 }
    .card { fill: #151b23; stroke: #3d444d } .gone { fill: #3c1618 } .kept { fill: #12261e } .rail { fill: #2a313c }
    .full { fill: #f85149 } .free { fill: #3fb950 }
  }
"""
SAYING = "why did the rounding test fail? "
PIN = "Never touch the production database."
PLAN = "- [x] totals round per line\n- [ ] rounding per currency: src/totals.py:41\n"


class Moment(NamedTuple):
    """The window at one moment: its tokens, by section, and how many messages it has."""

    used: int
    sections: dict[str, int]
    messages: int


class Story(NamedTuple):
    before: Moment
    after: Moment
    folded: int
    stored: int  # messages that a search still finds


def played(folder: str) -> Story:
    with limpet.open(folder=folder) as hold:
        session = hold.session("rounding")
        session.pin(PIN)
        session.notepad.write(PLAN)
        talk = [user("Round the totals of every report per currency.")]
        before = _moment(session.window.next(talk, limit=LIMIT))
        number = 0
        while True:
            number += 1
            talk += [
                user(f"{SAYING}Case {number}.\n" * 12),
                assistant(f"Case {number}: the cent is lost in line {number}. " * 20),
            ]
            step = session.window.next(talk, limit=LIMIT)
            if isinstance(step, Compact):
                return Story(before, _moment(step), step.folded, len(talk))
            before = _moment(step)


def _moment(step: Step) -> Moment:
    return Moment(step.gauge.used, dict(step.gauge.sections), len(step.messages))


def drawn(story: Story) -> str:
    before, after = story.before, story.after
    about = (
        f"Before, {before.used:,} of {LIMIT:,} tokens are used; after, {after.used:,}. Pins and notepad are the same. "
        f"{story.folded} messages became a summary; all of them can be found again."
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">A session before and after a compaction</title><desc id="d">{about}</desc>',
        f"<style>{STYLE}</style>",
    ]
    lines += _column(
        0,
        "Before the compaction",
        before,
        "full",
        [
            ("kept", "pinned", [PIN]),
            ("kept", "notepad", PLAN.splitlines()),
            (
                "gone",
                f"{before.messages:,} messages",
                [f"{SAYING}Case 1.", "Case 1: the cent is lost in line 1. …", "…"],
            ),
        ],
    )
    lines += _column(
        COLUMN + GAP,
        "After it, with Limpet",
        after,
        "free",
        [
            ("kept", "pinned: word for word", [PIN]),
            ("kept", "notepad: in full", PLAN.splitlines()),
            (
                "kept",
                f"a summary for {story.folded:,} messages",
                [
                    "what was asked, decided and left open",
                    "`uncompact` brings any message back",
                    f"all {story.stored:,} messages: found by `recall`",
                ],
            ),
        ],
    )
    return "\n".join([*lines, "</svg>", ""])


def _column(left: int, head: str, seen: Moment, bar: str, cards: list[tuple[str, str, list[str]]]) -> list[str]:
    share = seen.used / LIMIT
    lines = [
        f'<text class="head" x="{left}" y="22">{head}</text>',
        f'<text class="sub" x="{left}" y="44">{seen.used:,} of {LIMIT:,} tokens</text>',
        f'<rect class="rail" x="{left}" y="54" width="{COLUMN}" height="10" rx="5"/>',
        f'<rect class="{bar}" x="{left}" y="54" width="{COLUMN * share:.0f}" height="10" rx="5"/>',
    ]
    top = 80
    for kind, title, texts in cards:
        height = 34 + 20 * len(texts)
        lines.append(f'<rect class="card {kind}" x="{left}" y="{top}" width="{COLUMN}" height="{height}" rx="8"/>')
        lines.append(f'<text class="sub" x="{left + 12}" y="{top + 20}">{escape(title)}</text>')
        lines += [
            f'<text x="{left + 12}" y="{top + 42 + 20 * row}">{escape(text)}</text>' for row, text in enumerate(texts)
        ]
        top += height + 10
    return lines


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(drawn(played(folder)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
