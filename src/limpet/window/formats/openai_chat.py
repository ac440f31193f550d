"""The format of OpenAI's Chat Completions API, and of the many compatible servers: a list of messages.

Each tool result is a separate message, directly after the message with its call. Such a message cannot have images, so
an image in a result goes into a user message after the results. Legacy function calls have no ids; they get one here
and lose it again when written.
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
from limpet.window.plan.rules import together

FORM = "openai_chat"
LONGEST_ID = 40  # characters; newer models take 64
SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
PDF = "application/pdf"
_ROLES = {"system": SYSTEM, "developer": SYSTEM, "user": USER, "assistant": ASSISTANT, "tool": TOOL, "function": TOOL}
_FIELD = "field"  # in a part's raw: the field of the message that has it, outside the content


# --- reading ---------------------------------------------------------------------------------------------------------


def read(native: Sequence[Any]) -> tuple[Message, ...]:
    out: list[Message] = []
    legacy = ""  # the id of the last legacy function call
    for number, message in enumerate(n.plain(native)):
        if _calls_function(message):
            legacy = f"function_{number}"
        out.append(_read_message(message, legacy))
    return tuple(out)


def _calls_function(native: Any) -> bool:
    return isinstance(native, dict) and isinstance(native.get("function_call"), dict)


def _read_message(native: Any, legacy: str) -> Message:
    """The converted message, or, if the conversion is not exact, the native one as it is."""
    if not isinstance(native, dict):
        return n.verbatim(USER, FORM, native)
    role = _ROLES.get(str(native.get("role")), USER)
    message = _read_result(native, legacy) if role == TOOL else _read_other(native, role, legacy)
    if message is not None:
        for raw in ({}, {FORM: _message_frame(native)}):
            tried = message._replace(raw=raw if role != TOOL else {})
            if n.same(_native([tried]), [native]):
                return tried
    return n.verbatim(role, FORM, native)


def _message_frame(native: Mapping[str, Any]) -> n.Native:
    own = n.frame(native, ("content", "refusal"))
    if isinstance(own.get("tool_calls"), list) and own["tool_calls"]:
        own["tool_calls"] = "calls"  # tells it from a list that was empty
    for field in ("function_call", "audio"):
        if isinstance(own.get(field), dict):
            own[field] = _FIELD
    return own


def _read_result(native: Mapping[str, Any], legacy: str) -> Message | None:
    content = native.get("content")
    call = native.get("tool_call_id") if native.get("role") == "tool" else legacy
    parts = _read_content(content)
    if not isinstance(call, str) or not call or any(not isinstance(part, Text) for part in parts):
        return None
    texts = tuple(part for part in parts if isinstance(part, Text))
    bare = Message(TOOL, (Result(call, texts),))
    if n.same(_native([bare]), [dict(native)]):
        return bare
    return Message(TOOL, (Result(call, texts, raw={FORM: n.frame(native, ("content", "tool_call_id"))}),))


def _read_other(native: Mapping[str, Any], role: str, legacy: str) -> Message | None:
    parts = list(_read_content(native.get("content")))
    if role == ASSISTANT:
        if isinstance(native.get("refusal"), str) and native["refusal"]:
            parts.append(Text(native["refusal"], {FORM: {_FIELD: "refusal"}}))
        if isinstance(native.get("audio"), dict):
            parts.append(Other({FORM: {_FIELD: "audio", "audio": native["audio"]}}))
        for item in native["tool_calls"] if isinstance(native.get("tool_calls"), list) else ():
            call = _read_call(item)
            if call is None:
                return None
            parts.append(call)
        match native:
            case {"function_call": {"name": str(name), "arguments": str(arguments)} as function}:
                own = {_FIELD: "function_call", "function_call": n.frame(function, ("name", "arguments"))}
                parts.append(Call(legacy, name, arguments, {FORM: own}))
    return Message(role, tuple(parts))


def _read_call(native: Any) -> Call | None:
    match native:
        case {"id": str(call), "function": {"name": str(name), "arguments": str(text)} as inner}:
            own = {**n.frame(native, ("id",)), "function": n.frame(inner, ("name", "arguments"))}
            return Call(call, name, text, {FORM: own})
        case {"id": str(call), "custom": {"name": str(name), "input": str(text)} as inner}:
            own = {**n.frame(native, ("id",)), "custom": n.frame(inner, ("name", "input"))}
            return Call(call, name, text, {FORM: own})
    return None


def _read_content(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (_read_text(content),) if content else ()
    return tuple(map(_read_part, content)) if isinstance(content, list) else ()


def _read_text(text: str) -> Text:
    return Text(text, {FORM: {"type": "text", "text": ""}} if n.blank(text) else {})


def _read_part(native: Any) -> Part:
    return n.read_part(FORM, native, _converted, lambda part: _write_part(part, USER))


def _converted(native: Mapping[str, Any]) -> Part | None:
    match native:
        case {"type": "text", "text": str(text)}:
            bare = list(native) == ["type", "text"] and not n.blank(text)
            return Text(text) if bare else Text(text, {FORM: n.frame(native, ("text",))})
        case {"type": "refusal", "refusal": str(text)}:
            return Text(text, {FORM: n.frame(native, ("refusal",))})
        case {"type": "image_url", "image_url": {"url": str(url)} as inner}:
            kind, source = n.from_url(url, "image/*")
            return Media(kind, {**source, FORM: {**native, "image_url": n.frame(inner, ("url",))}})
        case {"type": "input_audio", "input_audio": {"data": str(data)} as inner}:
            kind = SOUNDS.get(str(inner.get("format")), "audio/*")
            return Media(kind, {"data": data, FORM: {**native, "input_audio": n.frame(inner, ("data",))}})
        case {"type": "file", "file": {"file_data": str(data)} as inner}:
            kind, source = n.from_url(data, PDF)
            if "data" in source:
                return Media(kind, {**source, FORM: {**native, "file": n.frame(inner, ("file_data",))}})
    return None


# --- writing ---------------------------------------------------------------------------------------------------------


def write(messages: Sequence[Message]) -> list[Any]:
    return _native(n.legal_ids(together(messages), FORM, LONGEST_ID))


def _native(messages: Sequence[Message]) -> list[Any]:
    out: list[Any] = []
    functions: dict[str, str] = {}  # names of legacy function calls, by id
    after: list[Part] = []  # parts that the results so far cannot have
    for message in messages:
        if message.role != TOOL and after:
            out += _write_message(Message(USER, tuple(after)))
            after = []
        if message.raw.get(n.VERBATIM) == FORM:
            out.append(n.plain(message.parts[0].raw[FORM]))
        elif message.role == TOOL:
            for part in message.parts:
                if isinstance(part, Result):
                    out.append(_write_result(part, functions))
                    after += [inner for inner in part.parts if isinstance(inner, Media) and _carried(inner)]
                else:
                    after.append(part)
        else:
            functions.update((call.id, call.name) for call in message.calls() if _is_function(call))
            out += _write_message(message)
    return out + (_write_message(Message(USER, tuple(after))) if after else [])


def _is_function(call: Call) -> bool:
    return bool(call.raw.get(FORM, {}).get(_FIELD) == "function_call")


def _write_message(message: Message) -> list[Any]:
    """The native message; none if it would be empty."""
    own = message.raw.get(FORM)
    content = [part for part in message.parts if not _outside(part)]
    out: n.Native = {"role": message.role} if own is None else n.plain(own)
    shape = out.get("content")
    if own is None or "content" in out or content:
        out["content"] = _content(shape, content, message.role)
    for part in message.parts:
        field = part.raw.get(FORM, {}).get(_FIELD) if _outside(part) and not isinstance(part, Thinking) else None
        if field == "refusal" and isinstance(part, Text):
            out["refusal"] = part.text
        elif field == "audio":
            out["audio"] = n.plain(part.raw[FORM]["audio"])
        elif field == "function_call" and isinstance(part, Call):
            inner = part.raw[FORM]["function_call"]
            out["function_call"] = n.filled(inner, name=part.name, arguments=part.arguments)
    calls = [_write_call(call) for call in message.calls() if not _is_function(call)]
    if calls:
        out["tool_calls"] = calls
    out = {key: item for key, item in out.items() if (key, item) not in _LEFT}
    filled = out.get("content") or any(key in out for key in ("tool_calls", "function_call", "refusal", "audio"))
    return [out] if own is not None or filled else []


# What a frame contains for a field whose part has been removed.
_LEFT = (("tool_calls", "calls"), ("function_call", _FIELD), ("audio", _FIELD))


def _outside(part: Part) -> bool:
    """Whether a part is outside the message's content."""
    if isinstance(part, Call | Result | Thinking):
        return True
    own = part.raw.get(FORM)
    return isinstance(own, Mapping) and _FIELD in own


def _content(shape: Any, parts: Sequence[Part], role: str) -> Any:
    if not isinstance(shape, list):
        if not parts:
            return "" if isinstance(shape, str) else None
        if isinstance(shape, str) and len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
    written = [native for part in parts if (native := _write_part(part, role)) is not None]
    if isinstance(shape, list) or any(not _is_bare(native) for native in written):
        return written
    # Many servers accept no list here, so a string is written wherever that is equivalent.
    return "\n\n".join(native["text"] for native in written) or None


def _is_bare(native: Any) -> bool:
    return isinstance(native, dict) and list(native) == ["type", "text"]


def _write_part(part: Part, role: str) -> Any:
    own = part.raw.get(FORM)
    match part:
        case Text(text):
            if own is None:
                return None if n.blank(text) else {"type": "text", "text": text}
            return n.filled(own, **{"refusal" if own.get("type") == "refusal" else "text": text})
        case Media():
            return _write_media(part, own, role)
        case Other():
            return n.plain(own) if own is not None else _write_part(n.placeholder(part, FORM), role)
    return None


def _write_media(media: Media, own: Mapping[str, Any] | None, role: str) -> Any:
    address = n.data_url(media)
    if own is not None:
        match own:
            case {"image_url": dict(inner)}:
                return n.filled(own, image_url=n.filled(inner, url=address))
            case {"input_audio": dict(inner)}:
                return n.filled(own, input_audio=n.filled(inner, data=media.raw.get("data")))
            case {"file": dict(inner)}:
                return n.filled(own, file=n.filled(inner, file_data=address))
    if role != USER or not _carried(media):
        return _write_part(n.placeholder(media, FORM), role)
    if media.kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": address}}
    if media.kind == PDF:
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": address}}
    sound = next(name for name, kind in SOUNDS.items() if kind == media.kind)
    return {"type": "input_audio", "input_audio": {"data": media.raw["data"], "format": sound}}


def _carried(media: Media) -> bool:
    """Whether a user message can have it: any image, or a sound or PDF with its bytes."""
    if media.kind.startswith("image/"):
        return n.data_url(media) is not None
    return "data" in media.raw and media.kind in (PDF, *SOUNDS.values())


def _write_call(call: Call) -> n.Native:
    own = call.raw.get(FORM)
    if own is None:
        function = {"name": n.legal_name(call, FORM), "arguments": n.as_object_text(call.arguments)}
        return {"id": call.id, "type": "function", "function": function}
    key, word = ("custom", "input") if "custom" in own else ("function", "arguments")
    return n.filled(own, id=call.id, **{key: n.filled(own[key], **{"name": call.name, word: call.arguments})})


def _write_result(result: Result, functions: Mapping[str, str]) -> n.Native:
    own = result.raw.get(FORM)
    if own is not None:
        out = n.filled(own, tool_call_id=result.call_id) if "tool_call_id" in own else n.plain(own)
        out["content"] = _result_content(result, out.get("content"), "content" in own)
        return {key: item for key, item in out.items() if key != "content" or "content" in own or item}
    if result.call_id in functions:
        return {"role": "function", "name": functions[result.call_id], "content": _result_content(result, "", True)}
    return {"role": "tool", "tool_call_id": result.call_id, "content": _result_content(result, "", True)}


def _result_content(result: Result, shape: Any, has_content: bool) -> Any:
    texts = [part if isinstance(part, Text) else _media_text(part) for part in result.parts]
    if result.error:
        texts = _as_error(texts)
    if isinstance(shape, list):
        return [native for text in texts if (native := _write_part(text, TOOL)) is not None]
    if len(texts) == 1:
        return texts[0].text
    return n.joined_text(texts) or (shape if has_content else "")


def _media_text(media: Media) -> Text:
    return Text(f"[{media.kind}: see the next user message]") if _carried(media) else n.placeholder(media, FORM)


def _as_error(texts: Sequence[Text]) -> list[Text]:
    """This format has no flag for a failed call, so the text says it."""
    words = n.joined_text(texts)
    if words.lower().startswith("error"):
        return list(texts)
    return [Text("Error:" if not words else "Error: " + texts[0].text), *texts[1:]]
