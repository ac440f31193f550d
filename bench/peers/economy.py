"""context-mode over the same outputs and questions as ours, each output made by a command that prints the file.

It is used as it asks to be: the command runs inside it with the question as what is looked for, which keeps the output
and shows a first answer, and then the question is searched in what was kept. Both answers count for it, in what they
hold and in what they cost; for ours it is the preview and one read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.figures import MORE, compare
from bench.measure import table
from bench.peers.roll import context_mode
from bench.peers.sides import OverPipes, folder_for
from limpet.text import tokens

Asked = Mapping[str, Sequence[dict[str, Any]]]  # questions by the name of their file
BEST = 3  # searches of a process: after these it shows less of what it finds, and later nothing for a minute


class Economy(NamedTuple):
    answered: float  # share of the questions
    tokens: float  # mean of a question


def run(files: Sequence[Path], asked: Asked, answered: Callable[[dict[str, Any], str], bool], ours: Economy) -> None:
    peer = context_mode()
    if peer is None:
        return
    side = peer.start(folder_for("economy"), ())
    assert isinstance(side, OverPipes)
    hits: list[bool] = []
    read: list[int] = []
    for path in files:
        for question in asked[path.name]:
            if len(hits) % BEST == 0:
                side.again()
            shown = _shown(side, path, question["question"])
            hits.append(answered(question, shown))
            read.append(tokens.count(shown))
    side.close()
    theirs = Economy(sum(hits) / len(hits), sum(read) / len(read))
    what = f"of {len(hits)} questions answered by running and one search"
    compare(what, ours.answered, peer.name, theirs.answered, show="{:.1%}".format, better=MORE, peer=True)
    compare("tokens of both, mean", ours.tokens, peer.name, theirs.tokens, show="{:,.0f}".format, peer=True)
    both = {"Limpet": ours, peer.name: theirs}
    lines = [[who, f"{one.answered:.1%}", f"{one.tokens:,.0f}"] for who, one in both.items()]
    table("An output and one search in it with the question", ("who", "answered", "tokens, mean"), lines)


def _shown(side: OverPipes, path: Path, question: str) -> str:
    code = f"cat {shlex.quote(str(path))}"
    ran = side.server.call("ctx_execute", {"language": "shell", "code": code, "intent": question})
    found = side.server.call("ctx_search", {"queries": [question], "source": "execute:shell", "limit": 10})
    return "\n".join(part.get("text", "") for part in [*ran["content"], *found["content"]])
