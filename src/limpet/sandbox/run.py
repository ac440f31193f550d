"""The sandbox operation: agent-written Python over stored outputs and the notepad. Its output enters the window.

The code writes through the usual operations: each write of the notepad is versioned and in the history. A run that
fails later does not roll them back, and its error says so.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Mapping
from typing import Any

from limpet import errors, limits, settings
from limpet.catalogue.late import resolve
from limpet.catalogue.operation import Caller, Context, Json, a_name, bounded, checked
from limpet.catalogue.table import OPERATIONS
from limpet.memory import state
from limpet.model import STATE, TOOL, Output, lowest
from limpet.outputs import keep as output_keep
from limpet.outputs import read as output_read
from limpet.record import NamedTuple
from limpet.sandbox import monty
from limpet.session import notepad
from limpet.store import to_json
from limpet.text import tokens

NAMED = "sandbox/"  # before the name of kept code, among the values of agents
NAME = "run_sandbox_code"
PRINTED_CHARS = 400  # of what was printed, in an error
SOURCE_CHARS = 80  # of the line that failed
CALL_CHARS = 2_000  # of the code, as what made an output that is kept
# The API of the code. JSON is parsed and lines are split inside: a value that crosses takes many times its memory.
PRELUDE = """
import json as _json

class Notepad:
    def read(self):
        return _notepad_read()
    def write(self, text):
        return _notepad_write(text)
    def append(self, text):
        return _notepad_append(text)

class Session:
    def __init__(self):
        self.notepad = Notepad()

class Outputs:
    def read(self, id, **how):
        return _outputs_read(id, how)
    def lines(self, id, first=1, last=None):
        text = _outputs_lines(id, first, last)
        return text.removesuffix("\\n").split("\\n") if text else []
    def json(self, id):
        return _json.loads(_outputs_read(id, {}))
    def search(self, id, query):
        return _outputs_read(id, {"query": query})
    def list(self):
        return _outputs_list()

session = Session()
outputs = Outputs()
"""
TAKEN = ("session", "outputs")
LESS = "Do less at a time: outputs.lines(id, first, last) reads a part."
STOPPED = {  # by limit: what happened, and what to do
    "time": ("it ran longer than {seconds} seconds", LESS),
    "memory": ("it needed more than {memory} MB of memory", LESS),
    "calls": (
        f"it called outputs and session.notepad more than {limits.SANDBOX_CALLS:,} times",
        "Read more with each call.",
    ),
    "sleep": ("it wanted to sleep", "There is nothing to wait for; leave it out."),
    "printed": (
        f"it printed more than {output_keep.size(limits.SANDBOX_PRINTED_BYTES)}",
        "Print what you need to see; the rest stays in the output it came from.",
    ),
    "result": (
        f"its result is larger than {limits.SANDBOX_RESULT_CHARS:,} characters or nested too deeply",
        "Return what you need to see.",
    ),
    "crash": ("its process ended without an answer", LESS),
}


class SandboxResult(NamedTuple):
    output: str  # what it printed, or a reference to that
    result: Any  # JSON, or a reference to it
    warning: str | None


def run_sandbox_code(
    ctx: Context, code: str = "", inputs: Mapping[str, Any] | None = None, name: str = ""
) -> SandboxResult:
    """Run code, and keep it under its name once it has worked; without code, run what has that name."""
    if not name:
        return _run(ctx, code, inputs)
    key = f"{NAMED}{a_name('name', name, limits.KEY_MAX_CHARS - len(NAMED))}"
    if not code.strip():
        return _run(ctx, _named_code(ctx, key, name), inputs)
    result = _run(ctx, code, inputs)
    state.agent_state(ctx, "set", key, code)
    return result


def _named_code(ctx: Context, key: str, name: str) -> str:
    entry = ctx.store.entries.read(ctx.scope, STATE, key)
    if entry is None:
        raise errors.no_entry("sandbox code", name, f'agent_state with action keys and prefix "{NAMED}" lists them.')
    return str(json.loads(entry.content))


def _run(ctx: Context, code: str, inputs: Mapping[str, Any] | None) -> SandboxResult:
    advice = "Split the work into several runs."
    bounded("code", code, limits.SANDBOX_CODE_MAX_CHARS, advice, blank="Write the Python to run.")
    for name in inputs or {}:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_") or name in TAKEN:
            rule = f"inputs are variables of the code: a Python name without _ first, and none of {', '.join(TAKEN)}"
            raise errors.bad_name("input", name, rule)
    api = _Api(ctx._replace(by=f"{ctx.who}/sandbox"))
    rules = monty.Rules(ctx.bounds.sandbox_seconds, ctx.bounds.sandbox_memory_mb << 20)
    done = monty.run(code, PRELUDE, inputs or {}, api.functions(), rules)
    if isinstance(done, monty.Broke):
        raise _problem(done, ctx.bounds, api.writes)
    output = _within(ctx, done.printed, code)
    written = to_json(done.result)
    result = _within(ctx, written, code)
    return SandboxResult(output, done.result if result == written else result, api.warning)


class _Api:
    """The functions that the code can call, each an operation or a part of one."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._touched: set[str] = set()
        self.writes = 0
        self.warning: str | None = None

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "_notepad_read": self._pad,
            "_notepad_write": lambda text: self._write("write_notepad", {"content": text}),
            "_notepad_append": lambda text: self._write("update_notepad", {"operation": "append", "content": text}),
            "_outputs_read": self._read,
            "_outputs_lines": self._lines,
            "_outputs_list": self._list,
        }

    def _write(self, name: str, arguments: Json) -> Json:
        operation = OPERATIONS[name]
        answer = operation.render(resolve(operation.run)(self._ctx, **checked(operation, arguments)))
        self.writes += 1
        self.warning = answer.get("warning")
        return answer

    def _lower_trust(self, origin: str) -> None:
        """Lower the provenance of later writes to that of what the code has read: they may contain it."""
        self._ctx = self._ctx._replace(by=f"{lowest(self._ctx.who, origin)}/sandbox")

    def _pad(self) -> str:
        pad = notepad.read_notepad(self._ctx)
        self._lower_trust(pad.origin)
        return pad.content

    def _read(self, id: Any, how: Json) -> str:
        """The requested part, or all of it. It does not enter the window, so it is not cut to fit one."""
        self._lower_trust(TOOL)
        arguments = checked(OPERATIONS["read_output"], {"id": id, **how})
        if not any(name in arguments for name in output_read.KINDS_OF_READ):
            output = self._output(id)
            return self._text(output.id, 0, output.size)
        usual = limits.OUTPUT_QUERY_TOKENS if "query" in arguments else limits.OUTPUT_MAX_BYTES
        return output_read.read_output(self._ctx, **{"tokens": usual, **arguments}).content

    def _lines(self, id: Any, first: Any, last: Any) -> str:
        output = self._output(id)
        end = output.lines if last is None else last
        for name, value in (("first", first), ("last", end)):
            if type(value) is not int:
                raise errors.wrong_type("outputs.lines", name, value, "a whole number, counted from 1")
        if first < 1 or end < first:
            return ""
        body = self._ctx.store.outputs.read_lines(self._ctx.scope, output.id, first, min(end, output.lines))
        return body.decode("utf-8", "replace")

    def _list(self) -> list[Json]:
        self._lower_trust(TOOL)  # previews say what is in them
        return [output_keep.output_json(item) for item in output_keep.list_outputs(self._ctx, limits.LIST_MAX).outputs]

    def _output(self, id: Any) -> Output:
        self._lower_trust(TOOL)
        checked_id = checked(OPERATIONS["read_output"], {"id": id})["id"]
        output = output_keep.find_output(self._ctx, checked_id)
        if output.id not in self._touched:  # one run is one use
            self._touched.add(output.id)
            self._ctx.store.outputs.touch(self._ctx.scope, output.id, self._ctx.now)
        return output

    def _text(self, id: str, start: int, stop: int) -> str:
        # Half of a surrogate pair can be stored, but not passed to the sandbox.
        return self._ctx.store.outputs.read_bytes(self._ctx.scope, id, start, stop).decode("utf-8", "replace")


def _within(ctx: Context, text: str, code: str) -> str:
    """A text if it is short enough for the window; otherwise it is stored as an output, and this is the reference."""
    if tokens.count(text) <= limits.SANDBOX_OUTPUT_TOKENS:
        return text
    always = ctx.bounds.outputs._replace(threshold_bytes=1)
    stored = output_keep.keep_output(
        ctx._replace(bounds=ctx.bounds._replace(outputs=always)), NAME, text, code[:CALL_CHARS]
    )
    if stored.output is not None:
        return stored.text
    beginning, _ = tokens.cut(text, limits.SANDBOX_OUTPUT_TOKENS)
    return f"{beginning}\n[cut here: {len(text):,} characters in all, and outputs are not kept in this project]"


def _problem(broke: monty.Broke, bounds: settings.Bounds, writes: int) -> errors.BadInput:
    stand = "It had changed nothing."
    if writes:
        stand = f"What it wrote to the notepad before that stands ({writes} changes)."
    printed = broke.printed.strip()
    printed_note = f" It had printed: {errors.quoted(printed[-PRINTED_CHARS:], PRINTED_CHARS + 50)}." if printed else ""
    if broke.limit:
        what, advice = STOPPED[broke.limit]
        counted = what.format(seconds=bounds.sandbox_seconds, memory=bounds.sandbox_memory_mb)
        return errors.sandbox_limit(counted, advice, stand + printed_note)
    line = f" at line {broke.line}, {errors.quoted(broke.source, SOURCE_CHARS)}" if broke.line else ""
    return errors.sandbox_failed(broke.message.rstrip(" ."), line, stand + printed_note)


# --- answers ----------------------------------------------------------------------------------------------------------


def result_json(value: SandboxResult) -> Json:
    answer: Json = {"output": value.output}
    if value.result is not None:
        answer["result"] = value.result
    return answer | ({"warning": value.warning} if value.warning else {})


def result_text(_ctx: Context, value: SandboxResult) -> str:
    result = "" if value.result is None else f"result: {json.dumps(value.result, ensure_ascii=False)}"
    parts = (value.output.rstrip("\n"), result, value.warning or "")
    return "\n".join(part for part in parts if part) or "It printed nothing."


class SessionSandbox:
    """`session.sandbox`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def run(self, code: str = "", inputs: Mapping[str, Any] | None = None, name: str = "") -> SandboxResult:
        """Run Python over this session's notepad and the kept outputs; what it prints and its last expression.

        With a name the code is kept; the name alone runs it again.
        """
        values = None if inputs is None else dict(inputs)
        return self._session.do(run_sandbox_code, code=code, inputs=values, name=name)
