"""JSON-RPC 2.0 as MCP uses it: read one message, refuse a bad one, write one reply.

Nothing in here knows a method or a transport. Both MCP doors read with it, so both refuse the
same input: text that is not JSON, numbers that are not numbers (NaN, 1e999), halves of characters
(lone surrogates), and messages of the wrong shape. Imports stay few here: every launch of a client
starts the stdio door.
"""

from __future__ import annotations

from limpet.light import BinaryIO, NoReturn, json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # in handshake revisions; 2026-07-28 uses INVALID_PARAMS instead
UNSUPPORTED_PROTOCOL_VERSION = -32022  # 2026-07-28

# A message holds one note or one tool result. More than this is a mistake or an attack, and
# reading it whole would cost several times its size in memory.
MESSAGE_MAX_BYTES = 16 * 1024 * 1024

FAILED_INSIDE = "Limpet failed inside; its log on stderr says where."

Json = dict[str, object]


class RpcError(Exception):
    """A protocol-level refusal: what JSON-RPC answers when there is no result.

    `id` is the request it belongs to, where that could be read before the refusal.
    """

    def __init__(self, code: int, message: str, *, data: object = None, id: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class RpcMessage:
    """One request or, when `id` is None, one notification."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: int | str | None, method: str, params: Json) -> None:
        self.id = id
        self.method = method
        self.params = params


class _NotANumber(ValueError):
    """A JSON text with NaN, Infinity or a number too large for a float."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NotANumber(name)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise _NotANumber(digits[:40])
    return value


def decode(line: bytes) -> object:
    """The JSON value of one message, or RpcError."""
    try:
        value: object = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except _NotANumber as problem:
        # Python reads NaN although JSON has none. Read it once more for the id, so that
        # the client learns which of its requests was refused.
        raise RpcError(
            PARSE_ERROR,
            f"The message holds {problem}, which is not a JSON number. Send a finite number or null.",
            id=_id_despite(line),
        ) from None
    except UnicodeDecodeError as problem:
        raise RpcError(
            PARSE_ERROR, f"The message is not UTF-8: byte {problem.start} cannot be read. Send UTF-8."
        ) from None
    except RecursionError:
        raise RpcError(PARSE_ERROR, "The message is nested too deeply to be read. Send a flatter one.") from None
    except ValueError as problem:
        raise RpcError(PARSE_ERROR, f"The message is not JSON: {problem}.") from None
    # Only an escape can smuggle half of a character in; strict UTF-8 has refused the raw bytes. In a tool call the
    # operation refuses it, so that the agent reads the sentence every other door would show.
    if may_hold_halves(line) and not _is_tool_call(value) and _has_lone_surrogate(value):
        raise RpcError(
            INVALID_REQUEST,
            "The message holds half of a character (a lone surrogate escape such as \\ud800), "
            "which cannot be stored. Send whole characters.",
            id=_id_of(value),
        )
    return value


def may_hold_halves(line: bytes) -> bool:
    """Whether there can be half of a character in a message: it has an escape for one, alone or with its other half."""
    return b"\\ud" in line or b"\\uD" in line


def _is_tool_call(value: object) -> bool:
    return isinstance(value, dict) and value.get("method") == "tools/call"


def _has_lone_surrogate(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _id_of(value: object) -> int | str | None:
    """The id of a message, where it has a valid one. MCP allows strings and whole numbers."""
    if isinstance(value, dict):
        id = value.get("id")
        if isinstance(id, str | int) and not isinstance(id, bool):
            return id
    return None


def _id_despite(line: bytes) -> int | str | None:
    try:
        return _id_of(json.loads(line))
    except (ValueError, RecursionError):
        return None


def message(value: object) -> RpcMessage | None:
    """The request or notification in a decoded value; None for a reply, which needs no answer."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "A message is a JSON object.")
    id = _id_of(value)
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'A message carries "jsonrpc": "2.0".', id=id)
    if "method" not in value and ("result" in value or "error" in value):
        return None
    method = value.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, 'A request names its "method" with a string.', id=id)
    if "id" in value and id is None:
        raise RpcError(INVALID_REQUEST, 'The "id" of a request is a string or a whole number.')
    params = value.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, f'The "params" of {method} are a JSON object.', id=id)
    return RpcMessage(id, method, params)


def encode(value: object) -> bytes:
    """Compact JSON without a newline in it, as bytes."""
    return dumps(value).encode("utf-8", "replace")


def dumps(value: object) -> str:
    """Compact JSON, with every character as itself: an agent pays for `\\u00e9` six times over."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def result(id: int | str | None, value: Json) -> Json:
    """The reply to a request that worked."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(problem: RpcError, id: int | str | None = None) -> Json:
    """The reply to a request that was refused."""
    body: Json = {"code": problem.code, "message": problem.message}
    if problem.data is not None:
        body["data"] = problem.data
    return {"jsonrpc": "2.0", "id": problem.id if id is None else id, "error": body}


def read_line(stream: BinaryIO, limit: int = MESSAGE_MAX_BYTES) -> bytes | None:
    """The next line that is not blank; None at the end of the stream.

    A line over the limit is skipped to its end and refused, and the next line can be read.
    """
    while True:
        line = stream.readline(limit + 1)
        if not line:
            return None
        if len(line) > limit and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(limit)
            raise RpcError(
                INVALID_REQUEST,
                f"The message is longer than {limit:,} bytes, the limit. Send the content in smaller pieces.",
            )
        if not line.isspace():
            return line
