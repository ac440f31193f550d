"""How many tokens messages cost: the provider's own count where there is one, an estimate for the messages after it.

A provider reports after each call what the request and its answer cost: "the first n messages were N tokens". Limpet
counts the messages after those, so the work of a step grows with what is new. The count of each text is
cached, for any message; the cache is bounded.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module, util
from math import ceil
from typing import Any, Protocol

from limpet.record import NamedTuple
from limpet.text import tokens
from limpet.window.messages import Call, Media, Message, Other, Part, Result, Text, Thinking

MESSAGE = 4  # tokens around a message: role, begin and end
CALL = 12  # around a call: its id, its name's frame
RESULT = 10  # around a result: the id it answers
DEFINITION = 8  # around the definition of a tool
_SAMPLED_CHARS = 48_000  # of one text that are counted exactly: some 40 ms, so that no step waits for long
CACHE_CHARS = 16 << 20  # of texts whose count is cached: some windows of a million tokens
_ENTRY = 100  # what a cached text costs besides its characters

# Tokens of the provider's tokenizer per 100 tokens of o200k. Anthropic publishes none: its last public one gave 2 to
# 10 % more, and it is better to compact a little early than to be refused.
_PERCENT = {"anthropic": 110}
_IMAGE = 1_600  # an image of unknown size: the usual upper size of a screenshot
_PDF_PAGE = 2_000  # text and picture of one page
_PDF_PAGE_BYTES = 60_000
_SOUND_SECOND = 10
_SOUND_SECOND_BYTES = 16_000
_IMAGE_HEAD = 96 << 10  # characters of base64 that are decoded; a JPEG may have its size behind a long preview


class Tokenizer(NamedTuple):
    """A function that counts the tokens of a text, and its name, which is shown beside every figure."""

    name: str
    count: Callable[[str], int]


class ProviderCount(NamedTuple):
    """A provider's count: the first `messages` messages cost `tokens`, with everything else in the request."""

    messages: int
    tokens: int


class DescribedTool(Protocol):
    """A tool as it is described to a model."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


ToolDefinition = DescribedTool | Mapping[str, Any]  # a mapping is a provider's own form
ESTIMATE = Tokenizer(tokens.NAME, tokens.count)


def exact() -> Tokenizer | None:
    """The o200k tokenizer, if the extra `tokens` is installed. It includes its vocabulary, so no network is needed."""
    return None if util.find_spec("splintr") is None else Tokenizer("o200k", _exact_count)


def _exact_count(text: str) -> int:
    """The tokens of a text; of a very long one the estimate, corrected by what three parts of it really cost."""
    if len(text) <= _SAMPLED_CHARS:
        return _o200k(text)
    size = _SAMPLED_CHARS // 3
    parts = [text[at : at + size] for at in (0, (len(text) - size) // 2, len(text) - size)]
    return round(tokens.count(text) * sum(map(_o200k, parts)) / max(1, sum(map(tokens.count, parts))))


def _o200k(text: str) -> int:
    # A lone surrogate cannot be encoded; it costs about as much as its replacement character.
    return len(_vocabulary().encode_ordinary(text.encode("utf-8", "replace").decode()))


@lru_cache
def _vocabulary() -> Any:
    # Read when the first text is counted: it takes 50 ms.
    return import_module("splintr").Tokenizer.from_pretrained("o200k_base")


def spent(usage: Mapping[str, Any]) -> int:
    """All tokens of a request and its answer, from the `usage` of an Anthropic or OpenAI response.

    Anthropic counts tokens read from or written to its cache separately from the input; OpenAI counts them as input.
    """
    keys: tuple[str, ...] = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    if "prompt_tokens" in usage:
        keys = ("prompt_tokens", "completion_tokens")
    elif "input_tokens_details" in usage:
        keys = ("input_tokens", "output_tokens")
    return sum(int(usage.get(key) or 0) for key in keys)


class Meter:
    """Counts messages for one provider and caches the counts."""

    def __init__(self, provider: str = "", tokenizer: Tokenizer = ESTIMATE, *, cache_chars: int = CACHE_CHARS) -> None:
        self.name = tokenizer.name
        self._provider = provider
        self._count = tokenizer.count
        self._percent = _PERCENT.get(provider, 100)
        self._room = cache_chars
        self._counts: dict[str, int] = {}  # by text, least recently used first

    def total(self, messages: Sequence[Message], counted: ProviderCount | None = None) -> int:
        """The tokens of all messages. `counted` must be about the first of these messages."""
        if counted is None or counted.messages > len(messages):
            return sum(map(self.message, messages))
        return counted.tokens + sum(map(self.message, messages[counted.messages :]))

    def definitions(self, tools: Sequence[ToolDefinition]) -> int:
        """The tokens of the tools that a request offers."""
        return sum(DEFINITION + self.text(_definition(tool)) for tool in tools)

    def message(self, message: Message) -> int:
        return MESSAGE + sum(map(self._part, message.parts))

    def text(self, text: str) -> int:
        counted = self._counts.pop(text, None)
        if counted is None:
            counted = -(-self._count(text) * self._percent // 100)
            self._room -= len(text) + _ENTRY
            while self._room < 0 and self._counts:
                oldest = next(iter(self._counts))
                del self._counts[oldest]
                self._room += len(oldest) + _ENTRY
            if self._room < 0:  # larger than the whole cache
                self._room += len(text) + _ENTRY
                return counted
        self._counts[text] = counted
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
        """A part without a type of its own, counted as the JSON it is sent as."""
        return sum(self.text(json.dumps(native, ensure_ascii=False, default=str)) for native in raw.values())

    def _media(self, media: Media) -> int:
        if isinstance(media.raw.get("text"), str):
            return self.text(media.raw["text"])
        data = media.raw.get("data")
        length = len(data) * 3 // 4 if isinstance(data, str) else 0
        if media.kind.startswith("image/"):
            return image(image_size(data) if isinstance(data, str) else None, self._provider)
        if media.kind.startswith("audio/"):
            return _SOUND_SECOND * ceil(length / _SOUND_SECOND_BYTES)
        if media.kind == "application/pdf":
            return _PDF_PAGE * max(1, ceil(length / _PDF_PAGE_BYTES))
        return self._json({key: item for key, item in media.raw.items() if key not in ("data", "url")})


def _definition(tool: ToolDefinition) -> str:
    """A tool as it is sent, about: each provider has another frame around the same words."""
    if not isinstance(tool, Mapping):
        tool = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(tool, ensure_ascii=False, default=str)


def image(pixels: tuple[int, int] | None, provider: str) -> int:
    """What an image costs by the published rules of providers.

    Anthropic: one token per 750 pixels, after fitting it into 2,000 by 2,000. OpenAI: 1.2 tokens per square of 32 by 32
    pixels. Elsewhere the larger of the two.
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


# --- image headers ---------------------------------------------------------------------------------------------------


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height in pixels, read from the header of a PNG, GIF, JPEG or WebP file in base64."""
    try:
        head = base64.b64decode(data[: _IMAGE_HEAD & ~3])
    except (binascii.Error, ValueError):
        return None
    pixels = None
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        pixels = _big(head, 16, 4), _big(head, 20, 4)
    elif head[:4] == b"GIF8" and len(head) >= 10:
        pixels = _little(head, 6, 2), _little(head, 8, 2)
    elif head[:2] == b"\xff\xd8":
        pixels = _jpeg(head)
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        pixels = _webp(head)
    return pixels if pixels and all(pixels) else None


def _big(head: bytes, offset: int, length: int) -> int:
    return int.from_bytes(head[offset : offset + length], "big")


def _little(head: bytes, offset: int, length: int) -> int:
    return int.from_bytes(head[offset : offset + length], "little")


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Skip segments up to the one that starts a frame, which has the size."""
    offset = 2
    while offset + 9 <= len(head) and head[offset] == 0xFF:
        marker = head[offset + 1]
        if marker == 0xFF:  # padding
            offset += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head, offset + 7, 2), _big(head, offset + 5, 2)
        else:
            offset += 2 + _big(head, offset + 2, 2)
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    if head[12:16] == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    if head[12:16] == b"VP8L":
        bits = _little(head, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if head[12:16] == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    return None
