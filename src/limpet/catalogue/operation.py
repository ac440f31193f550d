"""What an operation is: its row in the table, its parameters and their checks, and the context of a call.

The words that agents read are in prompts/tools/<name>.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from limpet import errors, limits, prompts, settings
from limpet.catalogue.late import resolve
from limpet.light import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, json, re
from limpet.model import EMPTY, DataFolder, Folder, Retry, Scope, Stamp, trusted
from limpet.platform import sha256
from limpet.record import NamedTuple
from limpet.redaction import Masking
from limpet.store import Store
from limpet.text import brief, safe

if TYPE_CHECKING:
    from limpet.memory.layers import LayerStores
    from limpet.recall.embeddings import Embeddings
else:
    LayerStores = object
    Embeddings = object  # neither imported nor a string: compiling the first string takes a millisecond

Json = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


class Context(NamedTuple):
    """Whose call this is: everything an operation needs that is not an argument of it."""

    store: Store
    scope: Scope
    session: str
    by: str
    now: int
    bounds: settings.Bounds
    skills: tuple[Folder, ...] = ()  # where skills are looked for; new ones go to the first
    root: str = "."  # the project's folder
    embeddings: Embeddings | None = None  # what recall knows of what texts are about
    data: DataFolder | None = None  # the project's folder in the person's data folder
    masking: Masking | None = None  # of secrets in what this call stores
    retry: Retry | None = None  # of a call that came with an idempotency key
    layers: LayerStores | None = None  # of memory, below the project's

    def one_session(self) -> str | None:
        """The session to look in; None when the call names every session."""
        return None if self.session == EVERY else self.session

    @property
    def who(self) -> str:
        """The origin of what this call writes."""
        return self.by.partition("/")[0]

    def stamp(self, operation: str, detail: Mapping[str, Any] = EMPTY) -> Stamp:
        return Stamp(self.by, operation, self.session, self.now, detail, self.masking, self.retry)

    def masked(self, text: str, before: str = "") -> str:
        """The text as it may be stored, for what is derived from it or written to a file. A store masks by itself."""
        return (self.masking or Masking()).text(text, before)


class Caller(Protocol):
    """A session, as the methods of its parts call operations."""

    id: str

    def do(self, function: Callable[Concatenate[Context, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an operation by its function. Its arguments are checked as those of a tool call."""

    def ctx(self) -> Context:
        """The context of a call that is no operation."""


_MOST = {"string": "maxLength", "strings": "maxItems"}  # in a JSON schema


class Param(NamedTuple):
    """One argument. `type` is "string", "integer", "boolean", "strings" (a list of them), "object" or "json" (any)."""

    name: str
    type: str = "string"
    required: bool = False
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0  # 0: any number that every program can write down
    clamp: bool = False  # a number outside the range is moved into it
    everywhere: bool = True  # listed in the small profiles too; it is accepted there in any case
    names: str = ""  # the kind of entry that it names by id
    bound: str = ""  # the setting in Bounds that limits its characters, or its members
    blank: bool = False  # an empty text says something, although it may be left out

    def schema(self, bounds: settings.Bounds) -> Json:
        most = {} if not self.bound else {_MOST[self.type]: getattr(bounds, self.bound)}
        if self.type == "strings":
            return {"type": "array", "items": {"type": "string"}, **most}
        if self.type == "json":
            return {}
        return {"type": self.type, **({"enum": list(self.choices)} if self.choices else {}), **most}


SESSION_ID = Param("session_id")
DEFAULTS = settings.Bounds()
IDEMPOTENCY_KEY = Param("idempotency_key", everywhere=False)
EVERY = "*"  # as a session id: every session of the project; only for reading
READ, WRITE, ADMIN = LEVELS = ("read", "write", "admin")  # access, each level including those before it


class Operation(NamedTuple):
    """A row of the table. `run`, `show` and `text` name functions as "module:function", imported at the first call."""

    name: str
    run: str  # takes a Context and the parameters, and returns a value
    show: str  # renders that value as JSON
    text: str = ""  # renders it with the Context as short text for a model; without one, `brief.record` does
    params: tuple[Param, ...] = ()
    result: Mapping[str, str] = EMPTY  # key of the answer: its JSON type; "?" at the end means not always there
    level: str = WRITE  # the access a caller needs
    profiles: tuple[str, ...] = ("full", "agent")
    aliases: tuple[str, ...] = ()  # other names that it is called by
    guidance: str = ""  # the part of the guidance that teaches it
    commands: tuple[str, ...] = ()  # the commands that call it; they show its description as help
    in_session: bool = True  # takes a session_id
    every_session: bool = False  # … which may be "*"
    only_reads: bool = False  # changes nothing, although it needs more than READ
    mends: bool = False  # … or repairs a file of the project before it reads: clients do not hear that it reads
    destructive: bool = False
    idempotent: bool = False
    with_window: bool = False  # references and folds in a window mention it
    at_once: bool = False  # in the prompt of a client that loads the other tools when its model looks for them
    own_window: bool = False  # needs a conversation that Limpet manages itself, which no MCP server sees
    in_folder: bool = False  # works on files of the project, so it needs the project's folder
    frees: bool = False  # makes room: allowed where a quota is used up
    waits: bool = False  # waits for other sessions
    retryable: bool = False  # one write: repeated with the same idempotency key, it is answered and not made again
    slow: bool = False  # may take seconds

    @property
    def read_only(self) -> bool:
        return self.only_reads or self.level == READ

    def render(self, value: Any, masking: Masking | None = None) -> Json:
        """A value that `run` returned, as JSON, and what the call masked."""
        answer: Json = resolve(self.show)(value)
        return answer if masking is None else answer | masked_json(masking)

    def render_text(self, ctx: Context, value: Any, masking: Masking | None = None) -> str:
        """The same as a model reads it."""
        body = resolve(self.text)(ctx, value) if self.text else brief.record(resolve(self.show)(value), ctx.now)
        hint = masked_json(masking).get("masked", {}) if masking is not None else {}
        if not hint:
            return body
        return f"{body}\n{brief.counted(hint['count'], 'secret')} ({', '.join(hint['kinds'])}): {hint['hint']}"

    def all_params(self) -> tuple[Param, ...]:
        """Its own parameters, and those that many operations take: the session, and a key for a call made twice."""
        params = (*self.params, IDEMPOTENCY_KEY) if self.retryable else self.params
        return (*params, SESSION_ID) if self.in_session else params

    def description(self) -> str:
        return prompts.tool(self.name).description

    def input_schema(self, *, small: bool = False, bounds: settings.Bounds = DEFAULTS, session: bool = True) -> Json:
        """The JSON schema of the arguments, with the limits in force. `small` leaves out those that a small profile
        does not list; without `session`, session_id is left out, because the door knows the session."""
        words = prompts.tool(self.name).params
        properties: Json = {}
        for param in self.all_params() if session else self.params:
            if small and not param.everywhere:
                continue
            properties[param.name] = param.schema(bounds)
            if param.name in words:
                properties[param.name]["description"] = words[param.name]
        schema: Json = {"type": "object", "properties": properties}
        if required := [param.name for param in self.params if param.required]:
            schema["required"] = required
        return {**schema, "additionalProperties": False}

    def output_schema(self, *, brief: bool = False) -> Json:
        """The answer's JSON schema; `brief` only names the keys that are always there."""
        required = [name for name, kind in self.result.items() if not kind.endswith("?")]
        if brief:
            return {"type": "object", "required": required}
        plain = {name: kind.rstrip("?") for name, kind in self.result.items()}
        properties = {name: {"type": kind} if kind else {} for name, kind in plain.items()}
        return {"type": "object", "properties": properties, "required": required}

    def annotations(self) -> dict[str, bool]:
        """MCP's hints, only where they differ from MCP's pessimistic defaults."""
        if self.read_only and not self.mends:
            return {"readOnlyHint": True}
        hints = {} if self.destructive else {"destructiveHint": False}
        return hints | ({"idempotentHint": True} if self.idempotent or self.mends else {})


def trust_json(origin: str) -> Json:
    """The label of a text that neither a person nor an agent of this project wrote."""
    return {} if trusted(origin) else {"trust": "data"}


def masked_json(masking: Masking, hint: str = "") -> Json:
    """What a call masked, and how a person keeps it all the same."""
    if not masking.count:
        return {}
    return {"masked": {"count": masking.count, "kinds": list(masking.kinds), "hint": hint or prompts.prompt("masked")}}


def fields_json(value: Any) -> Json:
    """A NamedTuple whose fields are the answer."""
    fields: Json = value._asdict()
    return fields


# --- checks of arguments ----------------------------------------------------------------------------------------------

INTEGER_MAX = (1 << 53) - 1  # beyond it JSON readers disagree, and databases refuse
_INTEGER = re.compile(r"[+-]?\d{1,16}", re.ASCII)


def checked(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, each of the right type. An argument that is None counts as absent."""
    params = {param.name: param for param in operation.all_params()}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in params:
            raise errors.unknown_argument(operation.name, name, list(params))
        if value is not None:
            values[name] = _value(operation.name, params[name], value)
    for param in operation.params:
        if param.required and param.name not in values:
            raise errors.missing(operation.name, param.name)
    return values


def _value(operation: str, param: Param, value: Any) -> Any:
    value = _meant(param, value)
    if param.type == "strings":
        if not isinstance(value, (list, tuple, set, frozenset)) or not all(isinstance(item, str) for item in value):
            raise errors.wrong_type(operation, param.name, value, "a list of strings")
        for item in value:
            storable(param.name, item)
        return tuple(value)
    if param.type == "boolean":
        if not isinstance(value, bool):
            raise errors.wrong_type(operation, param.name, value, "true or false")
        return value
    if param.type == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.wrong_type(operation, param.name, value, "a whole number")
        low, high = (param.low, param.high) if param.high else (-INTEGER_MAX, INTEGER_MAX)
        if param.clamp:
            return max(low, min(value, high))
        if not low <= value <= high:
            raise errors.out_of_range(operation, param.name, value, low, high)
        return value
    if param.type in ("object", "json"):
        return _json(operation, param, value)
    if not isinstance(value, str):
        raise errors.wrong_type(operation, param.name, value, "a string")
    if param.choices and value not in param.choices:
        raise errors.not_one_of(operation, param.name, value, param.choices)
    return storable(param.name, value)


_FLAGS = {"true": True, "false": False}


def _meant(param: Param, value: Any) -> Any:
    """What a caller meant who wrote a value as text, as small models do, where it can mean nothing else."""
    if isinstance(value, float) and param.type == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    meant: Any = value
    if param.type == "integer" and _INTEGER.fullmatch(text):
        meant = int(text)
    elif param.type == "boolean":
        meant = _FLAGS.get(text.lower(), value)
    elif param.type in ("strings", "object") and text[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            meant = json.loads(text)
    elif param.type == "strings" and "," not in text:  # with a comma it may be one word or several
        meant = [value] if text else []
    elif param.choices and value not in param.choices:
        meant = next((choice for choice in param.choices if choice.lower() == text.lower()), value)
    return meant


def _json(operation: str, param: Param, value: Any) -> Any:
    """The value as JSON gives it back. A value that JSON or the store cannot hold is refused."""
    if param.type == "object" and not isinstance(value, dict):
        raise errors.wrong_type(operation, param.name, value, "an object")
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise errors.not_json(operation, param.name) from None
    storable(param.name, written)
    return json.loads(written)


def storable(what: str, text: str) -> str:
    if why := safe.problem(text):
        raise errors.unstorable(what, why)
    return text


def bounded(what: str, text: str, limit: int, advice: str, *, blank: str | None = None) -> str:
    """A text within its limit. `blank` is the advice for an empty text; None allows it."""
    if len(text) > limit:
        raise errors.too_long(what, len(text), limit, advice)
    if blank is not None and not text.strip():
        raise errors.empty(what, blank)
    return text


def a_name(what: str, text: str, limit: int) -> str:
    """A key or a session id: one line that people can type."""
    name = text.strip()
    if not name:
        raise errors.empty(what, f"Give {what} a name.")
    if len(name) > limit:
        raise errors.too_long(what, len(name), limit, "Choose a shorter one.")
    if not name.isprintable():
        raise errors.bad_name(what, name, "it must be one line of visible characters")
    return name


def retry_of(operation: Operation, key: str | None, values: Mapping[str, Any], session: str | None) -> Retry | None:
    """A call with an idempotency key, as it is known when it is repeated."""
    if key is None:
        return None
    name = a_name("idempotency_key", key, limits.RETRY_KEY_MAX_CHARS)
    masked = Masking().value({name: values[name] for name in sorted(values)})  # by a digest a secret could be guessed
    call = json.dumps([operation.name, session, masked], default=list)
    return Retry(name, sha256(call.encode("utf-8", "surrogateescape")).hexdigest())


def session_name(text: str) -> str:
    return a_name("session_id", text, limits.SESSION_MAX_CHARS)
