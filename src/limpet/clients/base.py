"""What Limpet knows about a coding agent (`CodingAgent`), and what the hook dialects of the agents have in common.

`read` turns the payload of a hook into a `HookEvent`; `CodingAgent.write` turns a `HookAnswer` into the agent's JSON.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from limpet import limits
from limpet.light import TYPE_CHECKING, Any, json, re
from limpet.platform import open_ordinary
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from typing import Protocol

    from limpet.clients.edits import Edit, InstallTarget

    class MessageSink(Protocol):
        """Takes the messages of a transcript's record, in any of the formats that agents use."""

        def user(self, text: object) -> None: ...
        def assistant(self, text: object) -> None: ...
        def call(self, id: object, name: object, arguments: object) -> None: ...
        def result(self, id: object, text: str, *, error: bool = False) -> None: ...
        def anthropic(self, message: dict[str, Any]) -> None: ...
        def openai_responses(self, item: dict[str, Any]) -> None: ...


Json = dict[str, Any]
HOOK_SECONDS = 20  # an agent waits this long for a hook; Limpet needs a tenth of a second
RESULT_NAMES = ("tool_response", "toolResult", "tool_result", "tool_output", "result_json")
TEXT_NAMES = ("stdout", "textResultForLlm", "text_result_for_llm", "llmContent", "content", "result", "output")
# A pattern is compiled when it is first used: most hooks use none, and compiling takes longer than their work.
_SAVED_START = "Error: result ("
_SAVED_RESULT = r"(?s)Error: result \(.{1,80}\) exceeds .{0,200}?saved to (\S+?)\.?(?:\s|$)"

# Events in the form of Claude Code, which several agents have adopted: our name of the event, and a matcher of tools.
COMMON_EVENTS = {
    "SessionStart": ("session-start", ""),
    "UserPromptSubmit": ("prompt", ""),
    "PostToolUse": ("after-tool", "*"),
    "PreCompact": ("before-compact", ""),
    "Stop": ("stop", ""),
    "SessionEnd": ("session-end", ""),
}


class CodingAgent:
    """A coding agent. The defaults are those of an agent that is not known: it speaks the plain dialect."""

    name = ""
    title = ""

    # Installation
    home_folder = ""  # below the home folder; it exists if the agent is used on this machine
    programs: tuple[str, ...] = ()  # on the PATH of a machine where it is used
    scopes: tuple[str, ...] = ("project", "user")  # where it reads its configuration
    local_files = False  # whether it reads files of a project that are for one machine, besides those a team shares
    advice = ""  # what is left for a person to do after installing
    project_guidance: tuple[str, ...] = ()  # the file with instructions for the model; empty if there is none
    user_guidance: tuple[str, ...] = ()
    skills_folder = ".agents"

    # Environment
    session_variables: tuple[str, ...] = ()  # hold the id of the agent's session
    variables: tuple[str, ...] = ()  # set by the agent for every process it starts
    copied_variables = False  # other agents set `variables` too
    plugin_variable = ""  # set for the hooks of a plugin

    # Hooks
    has_hooks = True  # whether Limpet installs any
    passes_context = False  # whether the model is known to get the text of a hook
    hooks_also_run_by: tuple[str, ...] = ()  # other agents that run its installed hooks, and do not take their answers
    keeps_context = False  # what a hook gave stays in the conversation when it is resumed
    announces_turns = True  # an event follows the end of each turn
    takes_messages = False  # whether a hook can say something to the person: `systemMessage`
    cap_in_bytes = False  # whether the limit of a hook's text is in bytes, not characters
    silent_compaction = False  # no event follows a compaction: the context waits for the next event that can carry it
    tells_session = False  # MCP servers know the session; the sub-agents in it have to be distinguished
    hides_session = False  # neither MCP servers nor tool calls are given the session: the model has to name it
    replaceable_tools: tuple[str, ...] = ("*",)  # patterns of the tools whose results a hook can replace

    # Transcripts
    transcript_files: tuple[str, ...] = ()  # patterns below the home folder
    transcript_advice = ""  # how to get a file, where none can be found

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name

    def files(self, target: InstallTarget) -> dict[str, tuple[Edit, ...]]:
        """The configuration files, by path, and the edits that install Limpet.

        For an agent without hooks: `target.server(hooks=False)`, so that the server itself gives the handoff.
        """
        return {}

    def plugin_settings(self, root: str, home: str) -> tuple[str, ...]:
        """The files whose `enabledPlugins` switch plugins on and off; a later file wins."""
        return ()

    def recognises(self, payload: Mapping[str, Any]) -> bool:
        """Whether a hook payload can only come from this agent."""
        return False

    def result_text(self, text: str | None) -> str | None:
        """A tool's result without anything the agent adds to it."""
        return text

    def result_folders(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        """Where the agent itself saves results that are too long. A tool server can name any file in a response."""
        session = os.path.splitext(a_text(payload.get("transcript_path")))[0]
        return (os.path.join(session, "tool-results"),) if session else ()

    def was_compacted(self, payload: Mapping[str, Any]) -> bool:
        """Whether a request to the model shows that the conversation was compacted."""
        return False

    def write(self, event: HookEvent, answer: HookAnswer) -> Json:
        """The agent's JSON object for an answer; an empty one changes nothing."""
        reply: Json = {"context": answer.context} if answer.context else {}
        if answer.output is not None:
            reply["output"] = with_failure(event, answer.output)
        if answer.arguments is not None:
            reply["arguments"] = answer.arguments
        return reply

    @property
    def has_transcripts(self) -> bool:
        return bool(self.transcript_files or self.transcript_advice)

    def is_record(self, record: Mapping[str, Any]) -> bool:
        """Whether a record belongs to a transcript of this agent."""
        return False

    def session_of(self, record: Mapping[str, Any]) -> tuple[str, str]:
        """The session and the folder that a record names; empty where it names none."""
        return "", ""

    def title_of(self, record: Mapping[str, Any]) -> str:
        """The title that a record gives the session, which may be any record of the file."""
        return ""

    def collect(self, record: Mapping[str, Any], messages: MessageSink) -> None:
        """Add the messages of a record. Raises anything if the record has an unexpected shape."""

    def record_id(self, record: Mapping[str, Any]) -> str:
        """Of several records with the same id, the last one counts; empty if a record stands for itself."""
        return ""


class HookEvent(NamedTuple):
    """An event of any agent, in our terms."""

    client: CodingAgent
    name: str  # a key of TRIAGE in doors/hooks/triage.py
    client_name: str  # the agent's own name of the event
    session: str
    folder: str
    source: str = ""  # of a session's start: startup, resume, clear or compact
    tool: str = ""
    arguments: str = ""  # of the tool, as JSON
    result: str | None = None  # the tool's text; None if there is none, or none that can be replaced
    failed: bool = False  # as far as the result shows
    subagent: bool = False
    transcript: str = ""
    payload: Mapping[str, Any] = {}
    agent: str = ""  # the id of the sub-agent whose event it is
    parent: str = ""  # the session that began this one, where a sub-agent's session is named

    @property
    def own_session(self) -> str:
        """The session of who did it: a sub-agent that the agent tells apart has one of its own."""
        return self.session if self.agent in ("", self.session) else f"{self.session}.{self.agent}"

    @property
    def parent_session(self) -> str:
        return self.parent or (self.session if self.own_session != self.session else "")


class HookAnswer(NamedTuple):
    context: str = ""  # text for the model
    output: str | None = None  # shown to the model in place of the tool's result
    arguments: Json | None = None  # given to the tool in place of the model's arguments
    message: str = ""  # for the person, where the client shows it


def read(client: CodingAgent, name: str, payload: Mapping[str, Any]) -> HookEvent:
    """The event of a hook payload. A missing or malformed member counts as absent."""

    def text(*names: str) -> str:
        return str(next((payload[key] for key in names if isinstance(payload.get(key), str)), ""))

    roots = payload.get("workspace_roots")
    folder = text("cwd") or (str(roots[0]) if isinstance(roots, list) and roots else "")
    arguments = next((payload[key] for key in ("tool_input", "toolArgs") if payload.get(key) is not None), None)
    response = response_of(payload)
    return HookEvent(
        client,
        name,
        text("hook_event_name", "hookEventName"),
        text("session_id", "sessionId", "conversation_id"),
        folder if os.path.isdir(folder) else "",
        text("source"),
        text("tool_name", "toolName"),
        arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments),
        client.result_text(_result(response, client.result_folders(payload))),
        _failed(response),
        any(map(payload.get, ("agent_id", "parent_session_id", "parentAgentId"))),
        text("transcript_path", "transcriptPath"),
        payload,
        text("agent_id", "agentId"),
        text("parent_session_id", "parentAgentId"),
    )


def a_text(value: object) -> str:
    return value if isinstance(value, str) else ""


# --- results of tools -------------------------------------------------------------------------------------------------


def response_of(payload: Mapping[str, Any]) -> Any:
    """The tool's result as the agent sends it; None if there is none."""
    response = next((payload[key] for key in RESULT_NAMES if payload.get(key) is not None), None)
    if isinstance(response, str) and "result_json" in payload:
        try:
            return json.loads(response)
        except ValueError:
            return response
    return response


def text_of(response: Any) -> str | None:
    if isinstance(response, str):
        return response
    if isinstance(response, list):
        return _joined(response)
    if not isinstance(response, dict):
        return None
    name = text_name(response)
    if name is not None:
        return str(response[name])
    parts = response.get("content", response.get("llmContent"))
    return _joined(parts) if isinstance(parts, list) else None


def text_name(response: Mapping[str, Any]) -> str | None:
    return next((name for name in TEXT_NAMES if isinstance(response.get(name), str)), None)


def _result(response: Any, folders: Sequence[str]) -> str | None:
    if isinstance(response, dict) and (saved := _saved_file(response.get("persistedOutputPath"), folders)) is not None:
        return saved
    text = text_of(response)
    if (
        text is not None
        and len(text) < 2_000
        and text.startswith(_SAVED_START)
        and (match := re.match(_SAVED_RESULT, text))
    ):
        return _saved_file(match[1], folders) or text
    return text


def _saved_file(path: object, folders: Sequence[str]) -> str | None:
    """A result that the agent saved to a file in one of its folders; None if there is none, or none to be kept."""
    if not isinstance(path, str) or not path:
        return None
    try:
        real = os.path.realpath(path)
        if not any(real.startswith(os.path.realpath(folder) + os.sep) for folder in folders):
            return None
        with open_ordinary(real, getattr(os, "O_NOFOLLOW", 0)) as file:
            content = file.read(limits.OUTPUT_MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    return None if len(content) > limits.OUTPUT_MAX_BYTES else content.decode("utf-8", "replace")


def _joined(parts: list[Any]) -> str | None:
    """The text of content blocks; None if any block is not text, because it would get lost."""
    blocks = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    texts = [text for text in blocks if isinstance(text, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None


def _failed(response: Any) -> bool:
    if not isinstance(response, dict):
        return False
    kind = response.get("resultType", response.get("result_type"))
    return bool(response.get("isError") or response.get("is_error") or response.get("error")) or kind == "failure"


# --- answers ----------------------------------------------------------------------------------------------------------


def hook_output(event: HookEvent, **members: Any) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event.client_name, **members}}


def with_message(reply: Json, answer: HookAnswer) -> Json:
    """The reply with the message for the person, if there is one."""
    return {**reply, "systemMessage": answer.message} if answer.message else reply


def context_output(event: HookEvent, answer: HookAnswer) -> Json:
    return hook_output(event, additionalContext=answer.context) if answer.context else {}


def with_failure(event: HookEvent, output: str) -> str:
    """For agents that accept only a text: the text says that the tool failed."""
    return f"[The tool reported a failure.]\n{output}" if event.failed else output
