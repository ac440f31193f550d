"""The format of Anthropic's Messages API: `{"system": …, "messages": […]}`, as its create call takes them.

There, tool results are in a user message, before its text; here they become a separate message of role "tool".
Consecutive messages of one role are joined when written, unless they were separate when they were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from limpet.light import Any
from limpet.record import NamedTuple
from limpet.window.formats import native as n
from limpet.window.messages import (
    ASSISTANT,
    SYSTEM,
    TOOL,
    USER,
    Call,
    Media,
    Message,
    Other,
    Part,
    Result,
    Text,
    Thinking,
)
from limpet.window.plan.rules import together

FORM = "anthropic"
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
LONGEST_ID = 64  # characters; the pattern is checked by the API, a length is not documented
_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM}


# --- reading ---------------------------------------------------------------------------------------------------------


def read(native: Mapping[str, Any] | Sequence[Any]) -> tuple[Message, ...]:
    """The messages of a request's `system` and `messages`; a list is taken as its `messages`."""
    body = native if isinstance(native, Mapping) else {"messages": native}
    out: list[Message] = []
    if "system" in body:
        out.append(_read_system(n.plain(body["system"])))
    before = ""
    for message in n.plain(body["messages"]):
        role = message.get("role") if isinstance(message, dict) else None
        new = _read_message(message)
        if role in (before, "system") or (not before and role == "assistant"):
            new[0] = new[0]._replace(raw={**new[0].raw, n.APART: FORM})
        out += new
        before = str(role)
    return tuple(out)


def _read_system(content: Any) -> Message:
    parts = _read_content(content, SYSTEM)
    message = Message(SYSTEM, parts or ())
    if parts is None:
        return n.verbatim(SYSTEM, FORM, content)
    if message.parts and n.same(_content(None, _blocks(message)), content):
        return message
    return message._replace(raw={FORM: n.frame({"content": content}, ("content",))})


def _read_message(native: Any) -> list[Message]:
    role = _ROLES.get(str(native.get("role")), USER) if isinstance(native, dict) else USER
    parts = _read_content(native.get("content"), role) if isinstance(native, dict) else None
    if parts is None:
        return [n.verbatim(role, FORM, native)]
    split = _split(role, parts)
    turn = _turn(role, split)
    if n.same(_native(turn), native):
        return split
    split[0] = split[0]._replace(raw={FORM: n.frame(native, ("content",))})
    return split if n.same(_native(_turn(role, split)), native) else [n.verbatim(role, FORM, native)]


def _read_content(content: Any, role: str) -> tuple[Part, ...] | None:
    if isinstance(content, str):
        return (_read_text(content),) if content else ()
    if isinstance(content, list):
        return tuple(_read_block(block, role) for block in content)
    return None


def _split(role: str, parts: Sequence[Part]) -> list[Message]:
    """The messages of one native message: its results become a separate one."""
    out: list[Message] = []
    for part in parts:
        of = TOOL if isinstance(part, Result) else role
        if out and out[-1].role == of:
            out[-1] = out[-1]._replace(parts=(*out[-1].parts, part))
        else:
            out.append(Message(of, (part,)))
    return out or [Message(role, ())]


def _read_text(text: str) -> Text:
    return Text(text, {FORM: {"type": "text", "text": ""}} if n.blank(text) else {})


def _read_block(block: Any, role: str) -> Part:
    return n.read_part(FORM, block, lambda block: _converted(block, role), lambda part: _block(part, role))


def _converted(block: Mapping[str, Any], role: str) -> Part | None:
    match block:
        case {"type": "text", "text": str(text)}:
            bare = list(block) == ["type", "text"] and not n.blank(text)
            return Text(text) if bare else Text(text, {FORM: n.frame(block, ("text",))})
        case {"type": "thinking", "thinking": str(text)}:
            return Thinking(text, {FORM: n.frame(block, ("thinking",))})
        case {"type": "redacted_thinking"}:
            return Thinking("", {FORM: dict(block)})
        case {"type": "image" | "document", "source": dict(source)}:
            return _read_media(block, source)
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(arguments)} if role == ASSISTANT:
            return Call(call, name, n.as_text(arguments), {FORM: n.frame({**block, "input": ""}, ("id", "name"))})
        case {"type": "tool_result", "tool_use_id": str(call)} if role == USER:
            return _read_result(block, call)
    return None


def _read_media(block: Mapping[str, Any], source: Mapping[str, Any]) -> Media:
    fallback = "image/*" if block["type"] == "image" else PDF
    own: n.Native = {**block, "source": n.frame(source, ("data", "url"))}
    match source:
        case {"type": "base64", "data": str(data), "media_type": str(kind)}:
            return Media(kind, {"data": data, FORM: own})
        case {"type": "text", "data": str(text)}:
            return Media(str(source.get("media_type", "text/plain")), {"text": text, FORM: own})
        case {"type": "url", "url": str(url)}:
            return Media(fallback, {"url": url, FORM: own})
    return Media(fallback, {FORM: dict(block)})


def _read_result(block: Mapping[str, Any], call: str) -> Result | None:
    content = block.get("content")
    parts: list[Text | Media] = []
    if isinstance(content, str):
        parts += [_read_text(content)] if content else []
    elif isinstance(content, list):
        for inner in content:
            part = _read_block(inner, TOOL)
            kind = f"{FORM}/{inner.get('type')}" if isinstance(inner, dict) else FORM
            parts.append(part if isinstance(part, Text | Media) else Media(kind, {FORM: inner}))
    elif content is not None:
        return None
    error = block.get("is_error") is True
    bare = Result(call, tuple(parts), error)
    if n.same(_block(bare, USER), dict(block)):
        return bare
    return bare._replace(raw={FORM: n.frame(block, ("tool_use_id", "content"))})


# --- writing ---------------------------------------------------------------------------------------------------------


class _Turn(NamedTuple):
    """A native message under construction."""

    role: str
    blocks: list[Any]
    own: Mapping[str, Any] | None  # its frame, if it came from this form
    apart: bool = False
    verbatim: Any = None


def write(messages: Sequence[Message]) -> n.Native:
    """The `system` (if there is one) and `messages` of a request."""
    messages = n.legal_ids(together(messages, turns=True), FORM, LONGEST_ID, unique=True)
    at = 0
    while at < len(messages) and messages[at].role == SYSTEM and messages[at].raw.get(n.APART) != FORM:
        at += 1
    out: n.Native = {}
    _write_system(messages[:at], out)
    turns: list[_Turn] = []
    for message in messages[at:]:
        turn = _turn(message.role, [message])
        if turn.blocks or turn.own is not None or turn.verbatim is not None:
            _append(turns, turn)
    if turns and turns[0].role == "assistant" and not turns[0].apart:
        turns.insert(0, _Turn("user", [{"type": "text", "text": n.OPENING}], None))
    out["messages"] = [_native(turn) for turn in turns]
    return out


def _write_system(messages: Sequence[Message], out: n.Native) -> None:
    blocks = [block for message in messages for block in _blocks(message)]
    if len(messages) == 1 and messages[0].raw.get(n.VERBATIM) == FORM:
        out["system"] = n.plain(_verbatim(messages[0]))
    elif len(messages) == 1 and FORM in messages[0].raw:
        out["system"] = _content(messages[0].raw[FORM].get("content"), blocks)
    elif blocks:
        out["system"] = _content(None, blocks)


def _append(turns: list[_Turn], turn: _Turn) -> None:
    last = turns[-1] if turns else None
    if last is None or last.role != turn.role or turn.apart or last.verbatim is not None or turn.verbatim is not None:
        turns.append(turn)
    else:
        own = last.own if last.own is not None else turn.own
        blocks = sorted(last.blocks + turn.blocks, key=_after_results)
        turns[-1] = _Turn(last.role, blocks, own, last.apart)


def _after_results(block: Any) -> bool:
    """False for a result: the API requires results before everything else in a message."""
    return not isinstance(block, dict) or block.get("type") != "tool_result"


def _turn(role: str, messages: Sequence[Message]) -> _Turn:
    first = messages[0]
    apart = first.raw.get(n.APART) == FORM
    if first.raw.get(n.VERBATIM) == FORM:
        return _Turn(_native_role(role, apart), [], None, apart, _verbatim(first))
    blocks = [block for message in messages for block in _blocks(message)]
    if role == SYSTEM and not apart and FORM not in first.raw and blocks:
        words = n.SYSTEM_PREFIX + n.joined_text(first.parts)
        return _Turn("user", [{"type": "text", "text": words}], None)
    if role == TOOL:
        blocks.sort(key=_after_results)
    return _Turn(_native_role(role, apart or FORM in first.raw), blocks, first.raw.get(FORM), apart)


def _native_role(role: str, own: bool) -> str:
    if role == SYSTEM:
        return "system" if own else "user"
    return "assistant" if role == ASSISTANT else "user"


def _verbatim(message: Message) -> Any:
    return message.parts[0].raw[FORM]


def _native(turn: _Turn) -> Any:
    if turn.verbatim is not None:
        return n.plain(turn.verbatim)
    own = {"role": turn.role, "content": None} if turn.own is None else turn.own
    return n.filled(own, content=_content(own.get("content"), turn.blocks))


def _content(shape: Any, blocks: Sequence[Any]) -> Any:
    """A string if it was one or if that is equivalent, otherwise a list."""
    if not blocks:
        return [] if isinstance(shape, list) else ""
    bare = len(blocks) == 1 and isinstance(blocks[0], dict) and list(blocks[0]) == ["type", "text"]
    return blocks[0]["text"] if bare and not isinstance(shape, list) else list(blocks)


def _blocks(message: Message) -> list[Any]:
    written = (_block(part, message.role) for part in message.parts)
    return [block for block in written if block is not None]


def _block(part: Part, role: str) -> Any:
    own = part.raw.get(FORM)
    match part:
        case Text(text):
            if own is None:
                return None if n.blank(text) else {"type": "text", "text": text}
            return n.filled(own, text=text)
        case Thinking(text):
            # The API refuses thinking that it did not sign itself, or that was changed.
            if own is None:
                return None
            return n.filled(own, thinking=text) if own.get("type") == "thinking" else n.plain(own)
        case Call():
            return _write_call(part, own)
        case Result():
            return _write_result(part, own)
        case Media():
            return _write_media(part, own, role)
        case Other():
            return n.plain(own) if own is not None else _block(n.placeholder(part, FORM), role)


def _write_call(call: Call, own: Mapping[str, Any] | None) -> n.Native:
    start = {"type": "tool_use", "id": "", "name": "", "input": ""} if own is None else own
    return n.filled(start, id=call.id, name=n.legal_name(call, FORM), input=n.as_object(call.arguments))


def _write_result(result: Result, own: Mapping[str, Any] | None) -> n.Native:
    written = [_block(part, TOOL) for part in result.parts]
    blocks = [block for block in written if block is not None]
    if own is None:
        out: n.Native = {"type": "tool_result", "tool_use_id": result.call_id}
        if blocks:
            out["content"] = _content(None, blocks)
    else:
        out = n.filled(own, tool_use_id=result.call_id)
        if blocks or isinstance(out.get("content"), str | list):
            out["content"] = _content(own.get("content"), blocks)
    if result.error or isinstance(out.get("is_error"), bool):
        out["is_error"] = result.error
    return out


def _write_media(media: Media, own: Mapping[str, Any] | None, role: str) -> Any:
    if own is not None:
        out = n.plain(own)
        source = out.get("source") if isinstance(out, dict) else None
        for word, key in (("data", "data"), ("text", "data"), ("url", "url")):
            if isinstance(source, dict) and word in media.raw:
                source[key] = media.raw[word]
        return out
    source = _source(media) if role in (USER, TOOL) else None
    if source is None:
        return _block(n.placeholder(media, FORM), role)
    return {"type": "image" if media.kind.startswith("image/") else "document", "source": source}


def _source(media: Media) -> n.Native | None:
    if media.kind.startswith("image/") or media.kind == PDF:
        if "data" in media.raw and media.kind in (*IMAGES, PDF):
            return {"type": "base64", "media_type": media.kind, "data": media.raw["data"]}
        if str(media.raw.get("url", "")).startswith(("https://", "http://")):
            return {"type": "url", "url": media.raw["url"]}
    return None
