"""Secrets are masked before a text is stored, so that no copy, index or backup contains them.

A placeholder names the kind of secret and, for random secrets, a short hash, so that the same secret is recognisable
in several places: `[redacted:github-token:3f9a1c]`. Passwords and other values that people choose get no hash, because
they could be guessed from it: `[redacted:password]`.

Every write comes through here, and nearly every text is ordinary. So this module is light: a few substring searches say
whether a text can contain a secret at all, and `search`, with its patterns, is imported for the first that can.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from limpet.light import TYPE_CHECKING, Any, json
from limpet.record import NamedTuple
from limpet.redaction.hints import may_hold

if TYPE_CHECKING:
    from limpet.text.marks import Marks
else:
    Marks = object

MASK = "[redacted:"  # how a placeholder begins


class Redacted(NamedTuple):
    """The text without secrets, how many places were masked, and their kinds in alphabetical order."""

    text: str
    count: int  # type: ignore[assignment]  # the name is public; tuple.count is not needed
    kinds: tuple[str, ...]


def redact(text: str, marks: Marks | None = None, before: str = "") -> Redacted:
    """Mask every secret of a known kind, except those that `before` contains.

    `marks` are the results of `find_marks` for the text, if there are any.
    """
    if marks is None and not may_hold(text):
        return Redacted(text, 0, ())
    masked: Redacted = _search().redact(text, marks, before)
    return masked


@cache
def _search() -> Any:
    return import_module("limpet.redaction.search")


class Masking:
    """What one call does with the secrets in what it stores: masks them and counts them, or keeps them."""

    __slots__ = ("_masked", "keep")

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self._masked: dict[str, Redacted] = {}  # by the text it was, because a store may decide twice

    def text(self, text: str, before: str = "") -> str:
        """The text as it may be stored. Secrets that `before`, the earlier text, contains were kept by a person."""
        if self.keep:
            return text
        masked = redact(text, before=before)
        if masked.count:
            self._masked[text] = masked
        return masked.text

    def note(self, name: str, masked: Redacted) -> None:
        """Count what was masked elsewhere, in a text too big to be remembered here; `name` stands for it."""
        self._masked[name] = masked._replace(text="")

    def value(self, value: Any, before: str = "", name: str = "") -> Any:
        """The same for a JSON value; `name` is what it is called, because a name can make a text a secret."""
        if self.keep or not (value or name):
            return value
        if isinstance(value, str) and not name:
            return self.text(value, before)
        line = json.dumps({name: value} if name else value, ensure_ascii=False, default=str)
        if not redact(line, before=before).count:
            return value
        if isinstance(value, Mapping):
            return {self.text(str(key), before): self.value(inner, before, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner, before, name) for inner in value]
        return self._leaf(value, before, line)

    def _leaf(self, value: Any, before: str, line: str) -> Any:
        """A text or a number that is a secret, or contains one."""
        text = self.text(value, before) if isinstance(value, str) else ""
        if MASK in text:
            return text
        masked = redact(line, before=before)
        self._masked[line] = masked
        start = masked.text.index(MASK)
        return masked.text[start : masked.text.index("]", start) + 1]

    @property
    def count(self) -> int:
        return sum(masked.count for masked in self._masked.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted({kind for masked in self._masked.values() for kind in masked.kinds}))


VERBATIM = Masking(keep=True)  # for what was stored before: undone, restored
