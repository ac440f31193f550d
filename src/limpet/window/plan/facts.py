"""Facts: lines of a conversation that must survive a fold, extracted without a model.

Requests, rules, decisions, open items, figures, files and ids are taken from the messages of the user and the model and
from its tool calls. Of tool results, the failures count: the rest is data of unknown origin, and can be brought back in
full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from limpet import limits
from limpet.window.messages import ASSISTANT, USER, Message
from limpet.window.plan.actions import COMMAND, EFFECT, READ, Action, actions

ASKS, RULES, DECISIONS, OPEN, FIGURES = "asks", "rules", "decisions", "open", "figures"
TASKS, FAILURES, COMMANDS, CHANGES = "tasks", "failures", "commands", "changes"
FILES, IDS, NUMBERS, CLOSED = "files", "ids", "numbers", "closed"
KINDS = (ASKS, RULES, DECISIONS, OPEN, FIGURES, TASKS, FAILURES, COMMANDS, CHANGES, FILES, IDS, NUMBERS)
LINE_MAX = 300  # characters kept of one line
ASK_MAX = 400  # characters kept of one request
FAILED = "- failed: "  # the prefix of failures in the ledger of a task
_TASK = re.compile(r"\[(?:Task|Cancelled): ")
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*\[( |x|X)\]\s*(\S.*)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)")
_OPEN = re.compile(
    r"\b(?:todo|fixme|to do|still (?:open|missing|needs?|have to|has to|to)|remaining|next(?: step)?s?:|"
    r"open (?:question|item|point)s?|follow[- ]up|not (?:yet )?(?:done|finished)|pending|waiting for|blocked)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w+|decision|chose|choose|chosen|agreed|settled on|going with|opted|instead of|rather than|"
    r"(?:we|i)(?:'ll| will| are going to) (?:use|keep|go|take|drop|do)|approved|rejected)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must(?: not|n't)?|never|always|do not|don't|only ever|required|forbidden|not allowed|make sure|under no|"
    r"shall|may not|prefer|policy|rule)\b",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?:\$\{\w+\}|~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w(?::\d+(?:-\d+)?)?"
    r"|\b[\w-]+\.(?:py|pyi|ts|tsx|js|jsx|go|rs|java|kt|c|h|cpp|cs|rb|php|sql|sh|md|txt|json|ya?ml|toml|ini|cfg|csv|xml"
    r"|html|css|lock|log|ipynb|proto|tf)\b(?::\d+(?:-\d+)?)?"
)
_URL = re.compile(r"\b[a-z]{2,8}://[^\s<>\"')\]]+")
_NAME = re.compile(r"(?<![\w/.-])#?[A-Za-z0-9][\w-]{4,63}(?![\w/-])|#\d+\b")
_NUMBER = re.compile(r"[$€£]?\b\d[\d,.:]*\d(?:\s?%|[A-Za-z]{1,3}\b)?|\b\d+\s?%")
_DIGIT = re.compile(r"\d")

Facts = dict[str, list[str]]


def gather(group: Sequence[Message]) -> Facts:
    """The facts of one group."""
    facts: Facts = {}
    for message in group:
        if message.role not in (USER, ASSISTANT):
            continue
        text = message.text()
        if message.role == USER:
            if _TASK.match(text):
                _add(facts, TASKS, text.split("\n", 1)[0])
                text = _without_failures(facts, text)
            elif text.strip():
                _add(facts, ASKS, _short(" ".join(text.split()), ASK_MAX))
        _prose(facts, text)
        if message.role == USER and len(text) <= ASK_MAX:
            facts.pop(FIGURES, None)  # the request itself contains them
    for action in actions(group):
        _add_action(facts, action)
    return facts


def _without_failures(facts: Facts, text: str) -> str:
    """A finished task without the failures in its ledger: those are words of tools, which must not become rules,
    decisions or figures because of their wording."""
    lines = text.split("\n")
    failed = [line for line in lines if line.startswith(FAILED)]
    for line in failed:
        _add(facts, FAILURES, _short(line.removeprefix(FAILED), LINE_MAX))
    return "\n".join(line for line in lines if line not in failed)


def merge(many: Iterable[Mapping[str, Sequence[str]]]) -> Facts:
    """Facts of several groups in order. A repeated line counts as new; a closed item is removed from the open ones."""
    kinds: dict[str, dict[str, None]] = {}
    for facts in many:
        for kind, lines in facts.items():
            merged = kinds.setdefault(kind, {})
            for line in lines:
                merged.pop(line, None)
                merged[line] = None
        for done in facts.get(CLOSED, ()):
            kinds.get(OPEN, {}).pop(done, None)
    return {kind: _newest(kind, list(lines)) for kind, lines in kinds.items() if kind != CLOSED and lines}


def _newest(kind: str, lines: list[str]) -> list[str]:
    """The lines to keep. The first request is what all the work is for, so it stays."""
    most = limits.FACTS_KEPT
    if len(lines) <= most:
        return lines
    return [lines[0], *lines[1 - most :]] if kind == ASKS else lines[-most:]


def from_json(value: object) -> Facts:
    """Facts as a fold stores them."""
    record: Mapping[str, Any] = value if isinstance(value, dict) else {}
    return {kind: [str(line) for line in record[kind]] for kind in KINDS if isinstance(record.get(kind), list)}


def _prose(facts: Facts, text: str) -> None:
    code = False
    for line in text.split("\n"):
        plain = line.strip()
        if plain.startswith("```"):
            code = not code
        elif plain and not code:
            for sentence in _SENTENCE.split(plain) if len(plain) > LINE_MAX // 2 else (plain,):
                _sentence(facts, sentence)


def _sentence(facts: Facts, text: str) -> None:
    if box := _BOX.match(text):
        _add(facts, OPEN if box[1] == " " else CLOSED, _short(box[2].strip(), LINE_MAX))
    else:
        for kind, cue in ((OPEN, _OPEN), (DECISIONS, _DECISION), (RULES, _RULE)):
            if cue.search(text):
                _add(facts, kind, _short(text, LINE_MAX))
                break
        else:
            if _NUMBER.search(text) or (_DIGIT.search(text) and _names(text)):
                _add(facts, FIGURES, _short(text, LINE_MAX))
    _tokens(facts, text)


def _tokens(facts: Facts, text: str) -> None:
    if "/" in text or "." in text:
        if "://" in text:
            for url in _URL.findall(text):
                _add(facts, IDS, url.rstrip(".,;"))
            text = _URL.sub(" ", text)
        for path in _FILE.findall(text):
            _add(facts, FILES, path)
        text = _FILE.sub(" ", text)
    if _DIGIT.search(text):
        for name in _names(text):
            _add(facts, IDS, name)
        for number in _NUMBER.findall(text):
            _add(facts, NUMBERS, number)


def _names(text: str) -> list[str]:
    """Ids: words that mix letters and digits, and numbers with a # before them."""
    return [
        name
        for name in _NAME.findall(text)
        if name[0] == "#" or (any(c.isdigit() for c in name) and any(c.isalpha() for c in name))
    ]


def _add_action(facts: Facts, action: Action) -> None:
    if action.kind == COMMAND:
        _add(facts, COMMANDS, action.target)
    elif action.kind in (READ, EFFECT):
        _add(facts, FILES if action.kind == READ else CHANGES, action.target)
    if action.failure:
        _add(facts, FAILURES, f"{action.subject}: {action.failure}")


def _add(facts: Facts, kind: str, line: str) -> None:
    lines = facts.setdefault(kind, [])
    if line not in lines:
        lines.append(line)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
