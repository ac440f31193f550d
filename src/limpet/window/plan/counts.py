"""How many tokens messages cost. The provider's own count where there is one, an estimate for what came after it.

A provider says after each call what the request and its answer cost: "the first n messages were N tokens". Only the
messages behind those are counted here, so the work of a turn grows with what is new. Each text is counted once and
remembered, whichever message it stands in; the memory is bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, util
from math import ceil
from typing import Any, NamedTuple

from limpet.text import tokens
from limpet.window.messages import Call, Media, Message, Other, Part, Result, Text, Thinking
from limpet.window.plan.images import size

MESSAGE = 4  # tokens around a message: role, begin and end
CALL = 12  # around a call: its id, its name's frame
RESULT = 10  # around a result: the id it answers
MEMORY_CHARS = 16 << 20  # of texts whose count is remembered: some windows of a million tokens
_ENTRY = 100  # what remembering a text costs beside its characters

# What the provider's tokenizer gives for what o200k gives 100 for. Anthropic publishes none: its last public one gave
# 2 to 10 % more, and it is better to compact a little early than to be refused.
_PERCENT = {"anthropic": 110}
_IMAGE = 1_600  # an image whose size we do not know, at the usual upper size of a screenshot
_PDF_PAGE = 2_000  # text and picture of one page
_PDF_PAGE_BYTES = 60_000
_SOUND_SECOND = 10
_SOUND_SECOND_BYTES = 16_000


class Tokenizer(NamedTuple):
    """What counts the tokens of a text, and its name, which is shown beside every figure."""

    name: str
    count: Callable[[str], int]


class Known(NamedTuple):
    """What a provider said: the first `messages` messages cost `tokens`, with whatever else the request held."""

    messages: int
    tokens: int


ESTIMATE = Tokenizer(tokens.NAME, tokens.count)


def exact() -> Tokenizer | None:
    """The o200k tokenizer, if the extra `tokens` is installed; its vocabulary comes with it, no network is needed."""
    if util.find_spec("splintr") is None:
        return None
    o200k = import_module("splintr").Tokenizer.from_pretrained("o200k_base")

    def count(text: str) -> int:
        # A lone surrogate cannot be encoded; it costs about as much as the sign that stands in for it.
        return len(o200k.encode_ordinary(text.encode("utf-8", "replace").decode()))

    return Tokenizer("o200k", count)


def spent(usage: Mapping[str, Any]) -> int:
    """All tokens of a request and its answer, from the `usage` of an Anthropic or OpenAI response.

    Anthropic counts what was read from or written to its cache apart from the input, OpenAI counts it as input.
    """
    keys: tuple[str, ...] = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    if "prompt_tokens" in usage:
        keys = ("prompt_tokens", "completion_tokens")
    elif "input_tokens_details" in usage:
        keys = ("input_tokens", "output_tokens")
    return sum(int(usage.get(key) or 0) for key in keys)


class Meter:
    """Counts messages for one provider and remembers what it has counted."""

    def __init__(
        self, provider: str = "", tokenizer: Tokenizer = ESTIMATE, *, memory_chars: int = MEMORY_CHARS
    ) -> None:
        self.name = tokenizer.name
        self._provider = provider
        self._count = tokenizer.count
        self._percent = _PERCENT.get(provider, 100)
        self._room = memory_chars
        self._seen: dict[str, int] = {}  # in the order of last use

    def total(self, messages: Sequence[Message], known: Known | None = None) -> int:
        """The tokens of all messages. `known` must speak of the beginning of these very messages."""
        if known is None or known.messages > len(messages):
            return sum(map(self.message, messages))
        return known.tokens + sum(map(self.message, messages[known.messages :]))

    def message(self, message: Message) -> int:
        return MESSAGE + sum(map(self._part, message.parts))

    def text(self, text: str) -> int:
        counted = self._seen.pop(text, None)
        if counted is None:
            counted = -(-self._count(text) * self._percent // 100)
            self._room -= len(text) + _ENTRY
            while self._room < 0 and self._seen:
                oldest = next(iter(self._seen))
                del self._seen[oldest]
                self._room += len(oldest) + _ENTRY
            if self._room < 0:  # larger than the whole memory
                self._room += len(text) + _ENTRY
                return counted
        self._seen[text] = counted
        return counted

    def _part(self, part: Part) -> int:
        match part:
            case Text(text):
                return self.text(text)
            case Thinking(text):
                return self.text(text) if text else self._json(part.raw)
            case Call(_, name, arguments):
                return CALL + self.text(name) + self.text(arguments)
            case Result(_, parts):
                return RESULT + sum(map(self._part, parts))
            case Media():
                return self._media(part)
            case Other(raw):
                return self._json(raw)

    def _json(self, raw: Mapping[str, Any]) -> int:
        """What we have no words for, as the JSON it is sent as."""
        return sum(self.text(json.dumps(native, ensure_ascii=False, default=str)) for native in raw.values())

    def _media(self, media: Media) -> int:
        if isinstance(media.raw.get("text"), str):
            return self.text(media.raw["text"])
        data = media.raw.get("data")
        length = len(data) * 3 // 4 if isinstance(data, str) else 0
        if media.kind.startswith("image/"):
            return image(size(data) if isinstance(data, str) else None, self._provider)
        if media.kind.startswith("audio/"):
            return _SOUND_SECOND * ceil(length / _SOUND_SECOND_BYTES)
        if media.kind == "application/pdf":
            return _PDF_PAGE * max(1, ceil(length / _PDF_PAGE_BYTES))
        return self._json({key: item for key, item in media.raw.items() if key not in ("data", "url")})


def image(pixels: tuple[int, int] | None, provider: str) -> int:
    """What an image costs by the rules that providers have published.

    Anthropic: a token for 750 pixels, after fitting it into 2,000 by 2,000. OpenAI: 1.2 tokens for each square of 32 by
    32 pixels. Elsewhere the larger of the two.
    """
    if pixels is None:
        return _IMAGE
    width, height = pixels
    scale = min(1.0, 2_000 / max(width, height))
    anthropic = ceil(width * scale * height * scale / 750)
    openai = ceil(1.2 * ceil(width / 32) * ceil(height / 32))
    if provider == "anthropic":
        return anthropic
    return openai if provider.startswith("openai") else max(anthropic, openai)
