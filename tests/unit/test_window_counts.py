"""Tokens of messages: the provider's word counts first, the rest is counted once, and images by their size."""

from __future__ import annotations

import base64
import struct
import time

import pytest
from hypothesis import given

import window_kit as kit
from limpet.text import tokens
from limpet.window.messages import (
    ASSISTANT,
    TOOL,
    USER,
    Call,
    Media,
    Message,
    Other,
    Result,
    Text,
    Thinking,
    assistant,
    result,
    user,
)
from limpet.window.plan.counts import (
    CALL,
    ESTIMATE,
    MESSAGE,
    RESULT,
    Meter,
    ProviderCount,
    Tokenizer,
    exact,
    image,
    image_size,
    spent,
)

SAID = (user("Fix the parser."), assistant("Looking.", Call("a", "look", '{"at":"sea"}')), result("a", "blue\n" * 50))


class Counting:
    """A tokenizer of one token a character that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def test_a_message_costs_its_parts_and_its_frame() -> None:
    meter = Meter(tokenizer=Tokenizer("letters", len))
    assert meter.message(user("four")) == MESSAGE + 4
    assert meter.message(assistant("four", Call("id", "two", "{}"))) == MESSAGE + 4 + CALL + 3 + 2
    assert meter.message(result("id", "four")) == MESSAGE + RESULT + 4
    assert meter.message(Message(ASSISTANT, (Thinking("four"),))) == MESSAGE + 4
    assert meter.message(Message(USER, (Other({"x": {"a": 1}}),))) == MESSAGE + len('{"a": 1}')
    assert meter.message(Message(USER, ())) == MESSAGE
    assert meter.name == "letters"


def test_the_estimate_is_the_one_of_the_house() -> None:
    assert Meter().message(user(kit.PIXEL)) == MESSAGE + tokens.count(kit.PIXEL)
    assert Meter().name == tokens.NAME
    # No public tokenizer: a margin instead.
    assert Meter("anthropic").text("word " * 1_000) == -(-tokens.count("word " * 1_000) * 110 // 100)


def test_the_provider_knows_better() -> None:
    meter = Meter()
    assert meter.total(SAID, ProviderCount(2, 5_000)) == 5_000 + meter.message(SAID[2])
    assert meter.total(SAID, ProviderCount(3, 5_000)) == 5_000
    assert meter.total(SAID, ProviderCount(0, 100)) == 100 + meter.total(SAID)
    # A count of more messages than there are speaks of another conversation.
    assert meter.total(SAID, ProviderCount(4, 5_000)) == meter.total(SAID)


def test_what_the_provider_counted_is_not_counted_again() -> None:
    asked = Counting()
    Meter(tokenizer=Tokenizer("letters", asked)).total(SAID, ProviderCount(2, 5_000))
    assert asked.asked == ["blue\n" * 50]


def test_each_text_is_counted_once() -> None:
    asked = Counting()
    meter = Meter(tokenizer=Tokenizer("letters", asked))
    history: tuple[Message, ...] = ()
    for turn in range(50):
        history = (*history, user(f"question {turn}"), assistant(f"answer {turn}"))
        meter.total(history)
        meter.total(tuple(Message(one.role, one.parts) for one in history))
    assert len(asked.asked) == 100


def test_the_memory_has_a_bound() -> None:
    asked = Counting()
    meter = Meter(tokenizer=Tokenizer("letters", asked), cache_chars=1_000)
    for number in range(100):
        meter.text(f"{number:03}" * 100)
    assert sum(map(len, meter._counts)) <= 1_000
    before = len(asked.asked)
    meter.text("099" * 100)
    assert len(asked.asked) == before, "the newest is still known"
    meter.text("000" * 100)
    assert len(asked.asked) == before + 1, "the oldest is not"
    assert meter.text("x" * 5_000) == 5_000
    meter.text("099" * 100)
    assert sum(map(len, meter._counts)) <= 1_000


@given(history=kit.histories())
def test_every_history_has_a_count(history: tuple[Message, ...]) -> None:
    meter = Meter()
    total = meter.total(history)
    assert total == sum(meter.message(message) for message in history) >= MESSAGE * len(history)
    assert meter.total(history) == total
    for at in range(len(history) + 1):
        assert meter.total(history, ProviderCount(at, meter.total(history[:at]))) == total


def test_the_exact_tokenizer_works_offline_and_agrees_with_the_estimate() -> None:
    tokenizer = exact()
    assert tokenizer is not None
    assert tokenizer.name == "o200k"
    text = "The lighthouse keeper wrote down every ship, its flag and its cargo, in a ledger. " * 40
    assert tokenizer.count("hello world") == 2
    assert tokenizer.count("<|endoftext|>") > 1, "text that looks like a sign of control is text"
    assert tokenizer.count("\ud800") >= 1
    assert ESTIMATE.count(text) == pytest.approx(tokenizer.count(text), rel=0.15)


def test_of_a_very_long_text_parts_are_counted() -> None:
    tokenizer = exact()
    assert tokenizer is not None
    part = "Käyttöjärjestelmän asennus: 0x3f9a1c2b77e0, tarkista tiedosto /etc/fstab! "
    texts = {"one": part * 40_000, "two": part * 20_000 + "plain words of every day " * 60_000}
    for text in texts.values():
        began = time.perf_counter()
        counted = tokenizer.count(text)
        assert time.perf_counter() - began < 2
        assert counted == pytest.approx(
            sum(tokenizer.count(text[at : at + 40_000]) for at in range(0, len(text), 40_000)), rel=0.05
        )


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        (
            {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 4},
            64,
        ),
        ({"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 4}, 14),
        ({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}, 14),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 4}, 14),
        ({}, 0),
    ],
)
def test_usage_of_each_provider(usage: dict[str, object], total: int) -> None:
    assert spent(usage) == total


# --- images ----------------------------------------------------------------------------------------------------------


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1920, 1080) + b"\x08\x06\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 320, 200) + b"\0\0\0"
JPEG = (
    b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9 + b"\xff"  # padding before a marker
    + b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"  # tables come first; they hold no size
    + b"\xff\xc2" + struct.pack(">HBHH", 17, 8, 600, 800) + b"\0" * 12
)  # fmt: skip
WEBP = b"RIFF\0\0\0\0WEBP"
LOSSY = WEBP + b"VP8 \0\0\0\0" + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480) + b"\0" * 8
LOSSLESS = WEBP + b"VP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14) + b"\0" * 8
EXTENDED = WEBP + b"VP8X\0\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little") + b"\0" * 8


@pytest.mark.parametrize(
    ("data", "pixels"),
    [
        (PNG, (1920, 1080)),
        (GIF, (320, 200)),
        (JPEG, (800, 600)),
        (LOSSY, (640, 480)),
        (LOSSLESS, (640, 480)),
        (EXTENDED, (640, 480)),
        (PNG[:20], None),
        (b"\xff\xd8\xff", None),
        (b"\xff\xd8\xff\xe0\xff\xff", None),
        (WEBP + b"VP9 " + b"\0" * 20, None),
        (PNG.replace(struct.pack(">II", 1920, 1080), b"\0" * 8), None),
        (b"not an image at all", None),
        (b"", None),
    ],
)
def test_the_size_of_an_image(data: bytes, pixels: tuple[int, int] | None) -> None:
    assert image_size(encoded(data)) == pixels


def test_what_is_not_base64_has_no_size() -> None:
    assert image_size("%%%") is None
    assert image_size("iVBORw0KGgo") is None
    assert image_size("日本") is None


def test_what_images_cost() -> None:
    assert image((1000, 750), "anthropic") == 1_000
    assert image((4000, 3000), "anthropic") == image((2000, 1500), "anthropic") == 4_000
    assert image((1024, 1024), "openai_chat") == 1_229
    assert image((1024, 1024), "") == max(image((1024, 1024), "anthropic"), image((1024, 1024), "openai_chat"))
    assert image(None, "anthropic") == 1_600


def test_media_in_messages() -> None:
    meter = Meter("openai_chat", Tokenizer("letters", len))
    shot = Message(TOOL, (Result("a", (Media("image/png", {"data": encoded(PNG)}), Text("four"))),))
    assert meter.message(shot) == MESSAGE + RESULT + 2_448 + 4
    assert meter.message(Message(USER, (Media("text/csv", {"text": "four"}),))) == MESSAGE + 4
    assert meter.message(Message(USER, (Media("application/pdf", {"data": "JVBERi0="}),))) == MESSAGE + 2_000
    assert meter.message(Message(USER, (Media("audio/wav", {"data": "A" * 64_000}),))) == MESSAGE + 30
    assert meter.message(Message(USER, (Media("image/*", {"url": "https://example.com/a.png"}),))) == MESSAGE + 1_600
