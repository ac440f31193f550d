"""How much of a server's messages passes: bytes of one message, depth of its nesting, and blocks of one result.

The bounds are far above what servers send. Past them a message would fill the memory of the proxy, or end a client
that decodes it. The request that it answers gets an error instead.
"""

from __future__ import annotations

import json
from array import array
from itertools import accumulate

from limpet.doors.proxy import rewrite
from limpet.protocol.jsonrpc import RpcError, encode, error

MESSAGE_MAX_BYTES = 128 << 20  # twice the largest output, because JSON escapes line ends and quotes
SKIPPED_MAX_BYTES = 1 << 30  # of a longer message, before the server is given up
NESTING_MAX = 500  # half of what Python's own decoder reads; some clients read 128
BLOCKS_MAX = 10_000  # items in the content of one result
PARTS_MAX = 1_000_000  # things with a type in one message: decoding more to count blocks takes too much memory
EDGE_BYTES = 512  # at the beginning and the end of a long message, to learn which request it answers
REFUSED = -32000  # in the range JSON-RPC leaves to servers

_OPEN, _CLOSED = b"[{", b"]}"
_STEPS = bytes.maketrans(_OPEN + _CLOSED, b"\x01\x01\xff\xff")  # +1 and -1 as signed bytes
_OTHERS = bytes(set(range(256)) - set(_OPEN + _CLOSED))

TOO_LONG = (
    f"The server's answer is longer than {MESSAGE_MAX_BYTES:,} bytes, which is the limit. Ask it for less at a time."
)


def too_long(head: bytes, tail: bytes = b"") -> bytes:
    """The error in place of a message that is too long; empty if it is not known which request it answers."""
    key = rewrite.reply_id(head) if not tail else rewrite.reply_id(head[:100] + tail)
    return b"" if key is None else refusal(key, TOO_LONG)


def refusal(key: rewrite.Key, why: str) -> bytes:
    return encode(error(RpcError(REFUSED, why), key)) + b"\n"


def problem(line: bytes) -> str | None:
    """Why a message cannot pass."""
    if len(line) <= NESTING_MAX:
        return None
    if line.count(b"[") + line.count(b"{") > NESTING_MAX and nesting(line) > NESTING_MAX:
        return f"The server's message is nested more than {NESTING_MAX} deep. Ask it for something flatter."
    parts = line.count(b'"type"')
    if parts > BLOCKS_MAX and (parts > PARTS_MAX or _blocks(line) > BLOCKS_MAX):
        return f"The server's result has more than {BLOCKS_MAX:,} content blocks. Ask it for less at a time."
    return None


def nesting(line: bytes) -> int:
    """How deep the lists and objects of a message are nested."""
    if b"\\" in line:
        line = line.replace(b"\\\\", b"").replace(b'\\"', b"")  # so that every quote begins or ends a string
    structure = b"".join(line.split(b'"')[::2])
    steps = array("b", structure.translate(_STEPS, _OTHERS))
    return max(accumulate(steps), default=0)


def _blocks(line: bytes) -> int:
    """The items in the content of the result that has most of them."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return 0
    most = 0
    for message in value if isinstance(value, list) else [value]:
        result = message.get("result") if isinstance(message, dict) else None
        content = result.get("content") if isinstance(result, dict) else None
        most = max(most, len(content) if isinstance(content, list) else 0)
    return most
