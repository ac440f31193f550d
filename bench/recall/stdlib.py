"""Two sets made from Python's own standard library, to see that nothing is lost on code and documents.

Functions are asked for by the first sentence of their docstring, which is taken out of the text. Long docstrings are
asked for by some of the words of one of their sentences, which is taken out too. The sets depend on the interpreter.
"""

from __future__ import annotations

import ast
import os
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bench.recall.sets import Query, Set, Unit

FUNCTIONS, ASKED = 3_000, 500
LONG_WORDS = 80
_PASSED_OVER = ("test", "site-packages", "idlelib", "lib2to3", "encodings", "turtledemo")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
Documented = ast.FunctionDef | ast.ClassDef


def functions() -> Set:
    dice = random.Random(1)
    found = [pair for tree in _modules() for node in _documented(tree) if (pair := _function(node))]
    dice.shuffle(found)
    units = [Unit(str(at), code) for at, (_, code) in enumerate(found[:FUNCTIONS])]
    queries = [Query(said, frozenset((str(at),))) for at, (said, _) in enumerate(found[:ASKED])]
    return Set("functions", units, queries)


def docstrings() -> Set:
    dice = random.Random(1)
    units: list[Unit] = []
    queries: list[Query] = []
    for tree in _modules():
        for node in (*_documented(tree), tree):
            text = ast.get_docstring(node) or ""
            if len(text.split()) <= LONG_WORDS:
                continue
            id = str(len(units))
            fit = [one for one in _SENTENCE.split(text) if 8 <= len(one.split()) <= 40 and ">>>" not in one]
            if len(fit) > 3:
                chosen = dice.choice(fit[1:])
                text = text.replace(chosen, " ")
                asked = " ".join(word for word in chosen.split() if dice.random() < 0.6)
                queries.append(Query(asked, frozenset((id,))))
            units.append(Unit(id, text))
    return Set("docstrings", units, queries)


def _modules() -> Iterator[ast.Module]:
    for folder, _, names in sorted(os.walk(sysconfig.get_paths()["stdlib"])):
        if any(part in folder for part in _PASSED_OVER):
            continue
        for name in sorted(names):
            if name.endswith(".py"):
                try:
                    yield ast.parse((Path(folder) / name).read_text(encoding="utf-8"))
                except (SyntaxError, UnicodeDecodeError):
                    continue


def _documented(tree: ast.Module) -> list[Documented]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, Documented)]
    return [node for node in nodes if len(ast.get_docstring(node) or "") >= 30]


def _function(node: Documented) -> tuple[str, str] | None:
    """The first paragraph of a function's docstring, and the function without its docstring."""
    said = (ast.get_docstring(node) or "").split("\n\n", maxsplit=1)[0].replace("\n", " ")
    if not isinstance(node, ast.FunctionDef) or len(said.split()) < 5 or len(node.body) < 2:
        return None
    node.body = node.body[1:]
    code = ast.unparse(node)
    return (said, code[:3_500]) if len(code) >= 80 else None
