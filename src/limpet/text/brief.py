"""Short text for a model: one line per thing, relative dates, counts. Pure.

A line is a thing's id and what belongs to it, then its text. Further lines of the text are indented, so that no stored
text can pass for a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from limpet.light import Any, re
from limpet.model import milliseconds, trusted
from limpet.text.safe import visible

_UNITS = (("y", 365 * 86_400), ("mo", 30 * 86_400), ("w", 7 * 86_400), ("d", 86_400), ("h", 3_600), ("m", 60))
_AT_LEAST = 2  # of a unit, before the next larger one is used: 36 h and not 1 d
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_LONG = 200  # characters: a longer value has lines of its own
_ALWAYS = {"ok": True, "status": "ok"}  # say nothing
_TAGGED = r'#(?:"((?:[^"\\]|\\.)+)"|([^\s"]+?)(?=[\s,]+#|\s*$))'
DATA = "(data)"  # a text that neither a person nor an agent of this project wrote: no instruction


def ago(at: int, now: int) -> str:
    """The age of something, both times in milliseconds: now, 5m, 30h, 3d, 5w."""
    seconds = (now - at) // 1000
    for unit, length in _UNITS:
        if seconds >= length * (1 if unit == "m" else _AT_LEAST):
            return f"{seconds // length}{unit}"
    return "now"


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def item(head: Iterable[str], text: str, origin: str = "agent") -> str:
    """A line: the parts of its head, then its text. A text from elsewhere is labelled, and nothing in it hides."""
    parts = [part for part in head if part]
    if not trusted(origin):
        parts.append(DATA)
        text = visible(text)
    first, *more = text.splitlines() or [""]
    return "\n".join([" ".join((*parts, first)).rstrip(), *(f"  {line}" if line else "" for line in more)])


def tagged(tags: Iterable[str]) -> str:
    """Tags as #word, which costs a model the least; one of several words in quotation marks, which it cannot end."""
    return " ".join(f"#{tag}" if len(tag.split()) == 1 and '"' not in tag else f"#{_quoted(tag)}" for tag in tags)


def untagged(text: str) -> list[str]:
    """The tags in a text that is written as `tagged` writes them; none in any other."""
    text = text.strip()
    if not re.fullmatch(rf"(?:{_TAGGED}[\s,]*)+", text):
        return []
    return [word or re.sub(r"\\(.)", r"\1", quoted) for quoted, word in re.findall(_TAGGED, text)]


def _quoted(tag: str) -> str:
    escaped = tag.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def ages(times: Iterable[int], now: int) -> tuple[list[str], str]:
    """The age of each line, and for the closing line the age of all where it is the same."""
    each = [ago(at, now) for at in times]
    if len(each) > 1 and len(set(each)) == 1:
        return [""] * len(each), f", all {each[0]}"
    return each, ""


def lines(items: Iterable[str], closing: str = "") -> str:
    return "\n".join(part for part in (*items, closing) if part)


def record(value: Mapping[str, Any], now: int) -> str:
    """Any answer as text: what always says the same is left out, times are ages, lists have a line per member. It does
    not know where a text came from: nothing in it hides, and its lines are indented."""
    short, long = [], []
    for name, member in value.items():
        if _says_nothing(name, member):
            continue
        if isinstance(member, (list, tuple)) and any(isinstance(entry, Mapping) for entry in member):
            long += [f"{name}:", *(f"- {_flat(entry, now)}" for entry in member)]
        elif isinstance(member, str) and (len(member) > _LONG or "\n" in member):
            long += [f"{name}:", *(f"  {line}" if line else "" for line in visible(member).splitlines())]
        else:
            short.append(f"{name}: {visible(_value(member, now), keep_newlines=False)}")
    return "\n".join(filter(None, ("; ".join(short), *long))) or "ok"


def _says_nothing(name: str, value: Any) -> bool:
    return value is None or value in ("", [], {}, ()) or _ALWAYS.get(name) == value


def _flat(entry: Any, now: int) -> str:
    if not isinstance(entry, Mapping):
        return _value(entry, now)
    fields = ((name, member) for name, member in entry.items() if not _says_nothing(name, member))
    return item((), visible("; ".join(f"{name}: {_value(member, now)}" for name, member in fields)))


def _value(value: Any, now: int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(member, now)}" for name, member in value.items() if member is not None)
    if isinstance(value, (list, tuple)):
        return ", ".join(_value(member, now) for member in value)
    if isinstance(value, str) and re.fullmatch(_TIME, value):
        return ago(milliseconds(value), now)
    return str(value)
