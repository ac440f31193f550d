"""The format of OpenAI's Responses API: the list of items that its create call takes as `input`.

There, texts, reasoning and calls of the model are separate items; here consecutive ones are the parts of one assistant
message. That keeps a reasoning item with the item it belongs to, which the API requires.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

FORM = "openai_responses"
LONGEST_ID = 64  # characters
PDF = "application/pdf"
_ROLES = {"system": SYSTEM, "developer": SYSTEM, "user": USER}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_NOT_BY_MODEL = ("_output", "_response", "additional_tools")  # suffixes of the types that the model did not write


# --- reading ---------------------------------------------------------------------------------------------------------


def read(native: Sequence[Any] | str) -> tuple[Message, ...]:
    """The messages of a request's `input`; a string is a message of the user."""
    if isinstance(native, str):
        return (Message(USER, (Text(native),)),)
    out: list[Message] = []
    for item in n.plain(native):
        message = _read_item(item)
        if message.role == ASSISTANT and out and out[-1].role == ASSISTANT:
            out[-1] = out[-1]._replace(parts=out[-1].parts + message.parts)
        else:
            out.append(message)
    return tuple(out)


def _read_item(item: Any) -> Message:
    """The converted item, or, if the conversion is not exact, the native one as it is."""
    kind = str(item.get("type", "message")) if isinstance(item, dict) else ""
    message = None
    if kind == "message":
        message = _read_message(item)
    elif kind == "reasoning":
        message = Message(ASSISTANT, (Thinking(_reasoning(item), {FORM: item}),))
    elif kind in _CALLS:
        message = _read_call(item, _CALLS[kind])
    elif kind in _OUTPUTS.values():
        message = _read_result(item)
    if message is not None and n.same(_items(message, {}), [item]):
        return message
    role = TOOL if kind.endswith(_NOT_BY_MODEL) else ASSISTANT
    return Message(role, (Other({FORM: item}),))


def _reasoning(item: Mapping[str, Any]) -> str:
    parts = [part for key in ("summary", "content") if isinstance(item.get(key), list) for part in item[key]]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _read_message(item: Mapping[str, Any]) -> Message | None:
    content = item.get("content")
    if not isinstance(content, str | list):
        return None
    parts = _read_content(content)
    own = n.frame(item, ("content",))
    if item.get("role") != "assistant":
        role = _ROLES.get(str(item.get("role")), USER)
        bare = Message(role, parts)
        return bare if n.same(_items(bare, {}), [dict(item)]) else Message(role, parts, {FORM: own})
    if not parts or any(isinstance(part, Other | Media) for part in parts):
        return None
    bare = Message(ASSISTANT, parts)
    if n.same(_items(bare, {}), [dict(item)]):
        return bare
    # The first part keeps the frame of the item, the others are marked as its continuation.
    marked = [part._replace(raw={FORM: {"part": part.raw.get(FORM)}}) for part in parts if isinstance(part, Text)]
    marked[0] = marked[0]._replace(raw={FORM: {"item": own, **marked[0].raw[FORM]}})
    return Message(ASSISTANT, tuple(marked))


def _read_call(item: Mapping[str, Any], word: str) -> Message | None:
    match item:
        case {"call_id": str(call), "name": str(name)} if isinstance(item.get(word), str):
            return Message(ASSISTANT, (Call(call, name, item[word], {FORM: n.frame(item, ("call_id", "name", word))}),))
    return None


def _read_result(item: Mapping[str, Any]) -> Message | None:
    call, output = item.get("call_id"), item.get("output")
    if not isinstance(call, str) or not isinstance(output, str | list):
        return None
    parts: list[Text | Media] = []
    for part in _read_content(output):
        if isinstance(part, Text | Media):
            parts.append(part)
        elif isinstance(part, Other):
            parts.append(Media(f"{FORM}/part", part.raw))
    bare = Message(TOOL, (Result(call, tuple(parts)),))
    if n.same(_items(bare, {}), [dict(item)]):
        return bare
    return Message(TOOL, (Result(call, tuple(parts), raw={FORM: n.frame(item, ("call_id", "output"))}),))


def _read_content(content: str | list[Any]) -> tuple[Part, ...]:
    if isinstance(content, str):
        own = {FORM: {"type": "input_text", "text": ""}} if n.blank(content) else {}
        return (Text(content, own),) if content else ()
    return tuple(map(_read_part, content))


def _read_part(native: Any) -> Part:
    return n.read_part(FORM, native, _converted, lambda part: _write_part(part, USER))


def _converted(native: Mapping[str, Any]) -> Part | None:
    match native:
        case {"type": "input_text", "text": str(text)}:
            bare = list(native) == ["type", "text"] and not n.blank(text)
            return Text(text) if bare else Text(text, {FORM: n.frame(native, ("text",))})
        case {"type": "output_text", "text": str(text)}:
            return Text(text, {FORM: n.frame(native, ("text",))})
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text, {FORM: n.frame(native, ("refusal",))})
        case {"type": "input_image", "image_url": str(url)}:
            kind, source = n.from_url(url, "image/*")
            return Media(kind, {**source, FORM: n.frame(native, ("image_url",))})
        case {"type": "input_file", "file_data": str(data)}:
            kind, source = n.from_url(data, PDF)
            return Media(kind, {**source, FORM: n.frame(native, ("file_data",))}) if "data" in source else None
        case {"type": "input_file", "file_url": str(url)}:
            return Media(PDF, {"url": url, FORM: n.frame(native, ("file_url",))})
    return None


# --- writing ---------------------------------------------------------------------------------------------------------


def write(messages: Sequence[Message]) -> list[Any]:
    out: list[Any] = []
    custom: dict[str, str] = {}  # the types of the calls so far, by id
    for message in n.legal_ids(messages, FORM, LONGEST_ID):
        out += _items(message, custom)
    return out


def _items(message: Message, types: dict[str, str]) -> list[Any]:
    types.update((call.id, call.raw.get(FORM, {}).get("type", "function_call")) for call in message.calls())
    if message.role == ASSISTANT:
        return _assistant_items(message.parts)
    own = message.raw.get(FORM)
    if message.role != TOOL:
        start = {"role": message.role, "content": ""} if own is None else own
        content = _content(start.get("content") if own is not None else None, message.parts, message.role)
        return [n.filled(start, content=content)] if content or own is not None else []
    out = []
    for part in message.parts:
        if isinstance(part, Result):
            out.append(_write_result(part, types))
        elif isinstance(part, Other) and FORM in part.raw:
            out.append(n.plain(part.raw[FORM]))
        else:
            out += _items(Message(USER, (part,)), types)
    return out


def _assistant_items(parts: Sequence[Part]) -> list[Any]:
    out: list[Any] = []
    current: n.Native | None = None  # the message item that a further text may continue
    for part in parts:
        own = part.raw.get(FORM)
        if isinstance(part, Text) and own is not None and (current is not None or "item" in own):
            if "item" in own:
                current = n.plain(own["item"])
                out.append(current)
            _add_text(current or {}, part, own.get("part"))
            continue
        current = None
        match part:
            case Text(text) if not n.blank(text):
                out.append({"role": "assistant", "content": text})
            case Thinking() if own is not None:
                out.append(n.plain(own))  # reasoning of other providers is refused, and so is a changed one
            case Call():
                out.append(_write_call(part, own))
            case Other() if own is not None:
                out.append(n.plain(own))
            case Media() | Other():
                out.append({"role": "assistant", "content": n.placeholder(part, FORM).text})
    return out


def _add_text(item: n.Native, part: Text, own: Mapping[str, Any] | None) -> None:
    """Put a text back into its message item."""
    if isinstance(item.get("content"), str) and not item["content"]:
        item["content"] = part.text
        return
    start = {"type": "output_text", "text": "", "annotations": []} if own is None else own
    word = "refusal" if start.get("type") == "refusal" else "text"
    before = item.get("content")
    item["content"] = [*(before if isinstance(before, list) else []), n.filled(start, **{word: part.text})]


def _write_call(call: Call, own: Mapping[str, Any] | None) -> n.Native:
    if own is not None:
        return n.filled(own, **{"call_id": call.id, "name": call.name, _CALLS[own["type"]]: call.arguments})
    arguments = n.as_object_text(call.arguments)
    name = n.legal_name(call, FORM)
    return {"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments}


def _write_result(result: Result, types: Mapping[str, str]) -> n.Native:
    own = result.raw.get(FORM)
    parts = list(result.parts)
    if result.error and not n.joined_text(parts).lower().startswith("error"):
        # This format has no flag for a failed call, so the text says it.
        at = next((number for number, part in enumerate(parts) if isinstance(part, Text)), None)
        if at is None:
            parts.insert(0, Text("Error:"))
        else:
            parts[at] = Text("Error: " + parts[at].text)  # type: ignore[union-attr]
    output = _content(None if own is None else own.get("output"), parts, TOOL)
    if own is not None:
        return n.filled(own, call_id=result.call_id, output=output)
    kind = _OUTPUTS.get(types.get(result.call_id, ""), "function_call_output")
    return {"type": kind, "call_id": result.call_id, "output": output}


def _content(shape: Any, parts: Sequence[Part], role: str) -> Any:
    """A string if it was one or if that is equivalent, otherwise a list."""
    if not isinstance(shape, list) and len(parts) == 1 and isinstance(parts[0], Text):
        own = parts[0].raw.get(FORM)
        if own is None or list(own) == ["type", "text"]:
            return parts[0].text if own is not None or not n.blank(parts[0].text) else ""
    written = [native for part in parts if (native := _write_part(part, role)) is not None]
    return written if written or isinstance(shape, list) else ""


def _write_part(part: Part, role: str) -> Any:
    own = part.raw.get(FORM)
    match part:
        case Text(text):
            if own is None:
                return None if n.blank(text) else {"type": "input_text", "text": text}
            return n.filled(own, **{"refusal" if own.get("type") == "refusal" else "text": text})
        case Media():
            return _write_media(part, own, role)
        case Other():
            return n.plain(own) if own is not None else _write_part(n.placeholder(part, FORM), role)
    return None


def _write_media(media: Media, own: Any, role: str) -> Any:
    address = n.data_url(media)
    if own is not None:
        keys = ("image_url", "file_url", "file_data")
        word = next((key for key in keys if isinstance(own, dict) and own.get(key) == ""), None)
        return n.filled(own, **{word: address}) if word else n.plain(own)
    if role in (USER, TOOL) and address is not None:
        if media.kind.startswith("image/"):
            return {"type": "input_image", "detail": "auto", "image_url": address}
        if media.kind == PDF and "data" in media.raw:
            return {"type": "input_file", "filename": "document.pdf", "file_data": address}
        if media.kind == PDF:
            return {"type": "input_file", "file_url": address}
    return _write_part(n.placeholder(media, FORM), role)
