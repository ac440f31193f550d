"""The formats of the Model Context Protocol: the result of a tool call, and the messages of a sampling request.

A sampling request is `{"systemPrompt": …, "messages": […]}`. A user message with tool results has no other content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from limpet.light import Any
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

FORM = "mcp"
JOINED = "joined"  # in a message's raw: it was in one native message with the one before
LONGEST_ID = 64  # characters; the protocol has no limit, this is what the providers behind it accept
_ROLES = {"user": USER, "assistant": ASSISTANT}


# --- results ---------------------------------------------------------------------------------------------------------


def read_result(native: Mapping[str, Any], call_id: str) -> Result:
    """The answer of `tools/call` as the result of the call with this id."""
    content = n.plain(native.get("content"))
    parts = _result_parts(content if isinstance(content, list) else [])
    return Result(call_id, parts, native.get("isError") is True, {FORM: n.frame(native, ("content",))})


def write_result(result: Result) -> n.Native:
    """The result as an answer of `tools/call`."""
    own = result.raw.get(FORM)
    out: n.Native = {"content": []} if own is None else n.plain(own)
    blocks = [block for part in result.parts if (block := _block(part, TOOL)) is not None]
    if blocks or isinstance(out.get("content"), list):
        out["content"] = blocks
    if result.error or isinstance(out.get("isError"), bool):
        out["isError"] = result.error
    return out


# --- reading ---------------------------------------------------------------------------------------------------------


def read(native: Mapping[str, Any] | Sequence[Any]) -> tuple[Message, ...]:
    """The messages of a sampling request; a list is taken as its `messages`."""
    body = native if isinstance(native, Mapping) else {"messages": native}
    out: list[Message] = []
    if "systemPrompt" in body:
        out.append(_read_system(body["systemPrompt"]))
    for message in n.plain(body["messages"]):
        new = _read_message(message)
        if new[0].role == TOOL and out and out[-1].role == TOOL:
            new[0] = new[0]._replace(raw={**new[0].raw, n.APART: FORM})
        out += new
    return tuple(out)


def _read_system(text: Any) -> Message:
    if not isinstance(text, str):
        return n.verbatim(SYSTEM, FORM, n.plain(text))
    own = {FORM: {"systemPrompt": ""}} if n.blank(text) else {}
    return Message(SYSTEM, (Text(text),) if text else (), own)


def _read_message(native: Any) -> list[Message]:
    role = _ROLES.get(str(native.get("role")), USER) if isinstance(native, dict) else USER
    content = native.get("content") if isinstance(native, dict) else None
    if not isinstance(content, dict | list):
        return [n.verbatim(role, FORM, native)]
    split = _split(role, [_read_block(block, role) for block in (content if isinstance(content, list) else [content])])
    for raw in ({}, {FORM: _frame(native)}):
        split[0] = split[0]._replace(raw=raw)
        if n.same(_native(split), [native]):
            return split
    return [n.verbatim(role, FORM, native)]


def _frame(native: Mapping[str, Any]) -> n.Native:
    own = n.frame(native, ("content",))
    if isinstance(own["content"], dict):
        own["content"] = ""  # a single block, not a list of one
    return own


def _split(role: str, parts: Sequence[Part]) -> list[Message]:
    """The messages of one native message: its results become a separate one."""
    out: list[Message] = []
    for part in parts:
        of = TOOL if isinstance(part, Result) else role
        if out and out[-1].role == of:
            out[-1] = out[-1]._replace(parts=(*out[-1].parts, part))
        else:
            out.append(Message(of, (part,), {JOINED: FORM} if out else {}))
    return out or [Message(role, ())]


def _read_block(block: Any, role: str) -> Part:
    return n.read_part(FORM, block, lambda block: _converted(block, role), lambda part: _block(part, role))


def _converted(block: Mapping[str, Any], role: str) -> Part | None:
    match block:
        case {"type": "text", "text": str(text)}:
            bare = list(block) == ["type", "text"] and not n.blank(text)
            return Text(text) if bare else Text(text, {FORM: n.frame(block, ("text",))})
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(kind)}:
            return Media(kind, {"data": data, FORM: n.frame(block, ("data",))})
        case {"type": "resource_link", "uri": str(uri)}:
            return Media(str(block.get("mimeType") or "application/octet-stream"), {"url": uri, FORM: dict(block)})
        case {"type": "resource", "resource": dict(inner)}:
            kind = str(inner.get("mimeType") or "application/octet-stream")
            own = {**block, "resource": n.frame(inner, ("text", "blob"))}
            words = {field: inner[word] for field, word in _RESOURCE if isinstance(inner.get(word), str)}
            return Media(kind, {**words, FORM: own})
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(arguments)} if role == ASSISTANT:
            return Call(call, name, n.as_text(arguments), {FORM: n.frame({**block, "input": ""}, ("id", "name"))})
        case {"type": "tool_result", "toolUseId": str(call)} if role == USER:
            content = block.get("content")
            parts = _result_parts(content if isinstance(content, list) else [])
            own = n.frame(block, ("toolUseId", "content"))
            return Result(call, parts, block.get("isError") is True, {FORM: own})
    return None


_RESOURCE = (("text", "text"), ("data", "blob"))


def _result_parts(content: Sequence[Any]) -> tuple[Text | Media, ...]:
    parts: list[Text | Media] = []
    for block in content:
        part = _read_block(block, TOOL)
        parts.append(part if isinstance(part, Text | Media) else Media(f"{FORM}/content", {FORM: block}))
    return tuple(parts)


# --- writing ---------------------------------------------------------------------------------------------------------


def write(messages: Sequence[Message]) -> n.Native:
    """The `systemPrompt` (if there is one) and `messages` of a sampling request."""
    messages = n.legal_ids(together(messages), FORM, LONGEST_ID)
    at = 0
    while at < len(messages) and messages[at].role == SYSTEM:
        at += 1
    out: n.Native = {}
    if at == 1 and messages[0].raw.get(n.VERBATIM) == FORM:
        out["systemPrompt"] = n.plain(messages[0].parts[0].raw[FORM])
    elif at == 1 and FORM in messages[0].raw:
        out["systemPrompt"] = messages[0].text()
    elif words := n.joined_text([part for message in messages[:at] for part in _texts(message)]):
        out["systemPrompt"] = words
    out["messages"] = _native(messages[at:])
    return out


def _texts(message: Message) -> list[Part]:
    return [n.placeholder(part, FORM) if isinstance(part, Media | Other) else part for part in message.parts]


def _native(messages: Sequence[Message]) -> list[Any]:
    out: list[Any] = []
    before = ""  # the role of the previous message, if another may be joined to it
    for message in _unmixed(messages):
        if message.raw.get(n.VERBATIM) == FORM:
            out.append(n.plain(message.parts[0].raw[FORM]))
            before = ""
            continue
        own = message.raw.get(FORM)
        blocks = [block for part in message.parts if (block := _block(part, message.role)) is not None]
        if not blocks and own is None:
            continue
        joins = message.role == before == TOOL and message.raw.get(n.APART) != FORM
        if joins or (before and message.raw.get(JOINED) == FORM):
            _join(out[-1], blocks)
        else:
            role = "assistant" if message.role == ASSISTANT else "user"
            start = {"role": role, "content": ""} if own is None else own
            out.append(n.filled(start, content=_content(start.get("content"), blocks)))
        before = message.role
    return out


def _unmixed(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with results alone: other parts follow in a user message. System messages become user messages."""
    after: list[Part] = []
    for message in messages:
        if message.role == TOOL and message.raw.get(n.VERBATIM) != FORM:
            results = tuple(part for part in message.parts if isinstance(part, Result))
            after += [part for part in message.parts if not isinstance(part, Result)]
            if len(results) == len(message.parts):
                yield message
            elif results:
                yield Message(TOOL, results)
            continue
        if after:
            yield Message(USER, tuple(after))
            after = []
        if message.role == SYSTEM:
            words = n.joined_text(_texts(message))
            yield Message(USER, (Text(n.SYSTEM_PREFIX + words),) if words else ())
        else:
            yield message
    if after:
        yield Message(USER, tuple(after))


def _join(native: n.Native, blocks: list[Any]) -> None:
    content = native["content"]
    native["content"] = [*(content if isinstance(content, list) else [content]), *blocks]


def _content(shape: Any, blocks: list[Any]) -> Any:
    """A single block if it was one or if it is plain text, otherwise a list."""
    if isinstance(shape, list) or len(blocks) != 1:
        return blocks
    return blocks[0]


def _block(part: Part, role: str) -> Any:
    own = part.raw.get(FORM)
    match part:
        case Text(text):
            if own is None:
                return None if n.blank(text) else {"type": "text", "text": text}
            return n.filled(own, text=text)
        case Call():
            start = {"type": "tool_use", "id": "", "name": "", "input": ""} if own is None else own
            return n.filled(start, id=part.id, name=part.name, input=n.as_object(part.arguments))
        case Result():
            return _write_tool_result(part, own)
        case Media():
            return _write_media(part, own, role)
        case Other():
            return n.plain(own) if own is not None else _block(n.placeholder(part, FORM), role)
        case Thinking():
            return None


def _write_tool_result(result: Result, own: Mapping[str, Any] | None) -> n.Native:
    start = {"type": "tool_result", "toolUseId": "", "content": []} if own is None else own
    if "toolUseId" not in start:  # it was the answer of tools/call
        start = {"type": "tool_result", "toolUseId": "", **start}
    out = write_result(result._replace(raw={FORM: start}))
    out["toolUseId"] = result.call_id
    return out


def _write_media(media: Media, own: Any, role: str) -> Any:
    if own is not None and (role == TOOL or not str(own.get("type")).startswith("resource")):
        match own:
            case {"type": "image" | "audio"}:
                return n.filled(own, data=media.raw.get("data"))
            case {"type": "resource", "resource": dict(inner)}:
                words = {word: media.raw[field] for field, word in _RESOURCE if field in media.raw}
                return n.filled(own, resource=n.filled(inner, **words))
        return n.plain(own)
    kind = media.kind.partition("/")[0]
    if "data" in media.raw and kind in ("image", "audio"):
        return {"type": kind, "data": media.raw["data"], "mimeType": media.kind}
    return _block(n.placeholder(media, FORM), role)
