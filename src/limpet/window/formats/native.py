"""What the formats share: frames, media, placeholders for parts that a format cannot carry, legal ids and names.

A *frame* is a native dictionary without the values that `Message` holds. It keeps the order of the keys, the unknown
fields and whether a content was a string or a list; filled with those values, it is the native dictionary again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from limpet.light import Any, json, re
from limpet.platform import sha256
from limpet.window.messages import Call, Media, Message, Other, Part, Result, Text
from limpet.window.plan.rules import PartIndex, with_ids

# Keys of a message's `raw`, each with the name of a format.
APART = "apart"  # it was a separate native message there, although it could be joined to the one before
VERBATIM = "whole"  # its single part is the native message as it was

SYSTEM_PREFIX = "[System] "  # for a format that takes no system messages after the start
OPENING = "[The conversation begins with the assistant.]"  # for a format in which the first message is the user's

Native = dict[str, Any]
Words = Callable[[Native], Part | None]
Writes = Callable[[Part], Any]


def plain(value: Any) -> Any:
    """A copy of dictionaries, lists and plain values. The models of the official SDKs become dictionaries."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return value


def frame(native: Mapping[str, Any], words: Collection[str]) -> Native:
    """The native dictionary without these values; an empty string or list marks their type."""
    return {key: _hollow(item) if key in words else plain(item) for key, item in native.items()}


def _hollow(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    return [] if isinstance(value, list) else value


def filled(own: Mapping[str, Any], **words: Any) -> Native:
    out: Native = plain(own)
    out.update(words)
    return out


def same(left: Any, right: Any) -> bool:
    """Equal in value, type and order of keys, at every level; 1, 1.0 and true are different."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def blank(text: str) -> bool:
    return not text.strip()


def joined_text(parts: Sequence[Part]) -> str:
    """The texts of these parts as one text."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text) and not blank(part.text))


def verbatim(role: str, form: str, native: Any) -> Message:
    """A native message that `Message` cannot represent exactly, as it is."""
    return Message(role, (Other({form: native}),), {VERBATIM: form})


# --- arguments -------------------------------------------------------------------------------------------------------


def as_text(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def as_object(arguments: str) -> Native:
    """The arguments as a JSON object. Anything else (a custom tool's free text, broken JSON) becomes its `input`."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"input": arguments}


def as_object_text(arguments: str) -> str:
    """The same as text, unchanged if it is an object already."""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return arguments if is_object else as_text(as_object(arguments))


# --- media -----------------------------------------------------------------------------------------------------------


def data_url(media: Media) -> str | None:
    """A URL for a medium, if it has one that any provider can use: a data URL, or its own."""
    if "data" in media.raw:
        return f"data:{media.kind};base64,{media.raw['data']}"
    url = media.raw.get("url")
    return url if isinstance(url, str) else None


def from_url(url: str, kind: str) -> tuple[str, Native]:
    """The kind and the source of a medium by its URL. A data URL is decomposed."""
    match = re.match(r"data:([\w.+-]+/[\w.+-]+);base64,", url)
    if match:
        return match[1], {"data": url[match.end() :]}
    return kind, {"url": url}


def placeholder(part: Media | Other, form: str) -> Text:
    """The text that replaces a part the format cannot carry: its own text, or a line that names it."""
    if isinstance(part, Media):
        if isinstance(part.raw.get("text"), str) and not blank(part.raw["text"]):
            return Text(part.raw["text"])
        where = f" at {part.raw['url']}" if isinstance(part.raw.get("url"), str) else ""
        return Text(f"[{part.kind}{where}: not shown, {form} cannot carry it here]")
    for origin, native in part.raw.items():
        kind = native.get("type") or native.get("role") if isinstance(native, Mapping) else None
        return Text(f"[{origin} {kind or 'part'}: not shown, {form} cannot carry it]")
    return Text(f"[a part that {form} cannot carry]")


# --- ids and names ---------------------------------------------------------------------------------------------------


def legal_ids(messages: Sequence[Message], form: str, longest: int, *, unique: bool = False) -> tuple[Message, ...]:
    """Ids that the format accepts. Its own ids stay; with `unique`, a repeated id is replaced."""
    used: dict[str, int] = {}

    def new_id(_index: PartIndex, old: str, part: Part) -> str:
        legal = old if form in part.raw or _legal(old, longest) else f"call_{_digest(old)}"
        if not unique or isinstance(part, Result):
            return legal
        used[legal] = used.get(legal, 0) + 1
        if used[legal] == 1:
            return legal
        again = f"call_{_digest(f'{legal} {used[legal]}')}"
        used[again] = 1
        return again

    return with_ids(messages, new_id)


def _legal(name: str, longest: int) -> bool:
    return len(name) <= longest and re.fullmatch(r"[a-zA-Z0-9_-]+", name) is not None


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def legal_name(call: Call, form: str, longest: int = 64) -> str:
    if form in call.raw or _legal(call.name, longest):
        return call.name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:longest] or "tool"


def read_part(form: str, native: Any, words: Words, write: Writes) -> Part:
    """A converted part, or, if the conversion is not exact, the native one as it is."""
    part = words(native) if isinstance(native, dict) else None
    return Other({form: native}) if part is None or not same(write(part), native) else part
