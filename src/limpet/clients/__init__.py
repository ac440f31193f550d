"""Coding agents: one file per agent with everything that is particular to it.

An agent's file holds one subclass of `base.CodingAgent` and an instance of it, `CLIENT`: the edits of its
configuration, its hook dialect, its transcript format and the environment variables it sets. The package lists its own
modules, so a new agent is one new file. A hook imports the file of the agent that runs it; these files import nothing
heavy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module

from limpet import settings
from limpet.light import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limpet.clients.base import CodingAgent

_SHARED_MODULES = ("__init__", "base", "edits", "install")
_UNRECOGNISED = "copilot"  # its payloads do not name the event
_SESSION_SUFFIX = "SESSION_ID"  # of every session variable; the agents' files are read only if one is set
_GENERIC_SESSION = "AGENT_SESSION_ID"  # set by Goose, and proposed as a name for all agents

# What the hook of these prints before a compaction becomes an instruction to the summariser, an empty object too.
SILENT_BEFORE_COMPACT = ("claude-code",)


def names() -> tuple[str, ...]:
    """The names of all coding agents, sorted."""
    modules = (name.removesuffix(".py") for name in os.listdir(os.path.dirname(__file__)) if name.endswith(".py"))
    return tuple(sorted(name.replace("_", "-") for name in modules if name not in _SHARED_MODULES))


def every() -> tuple[CodingAgent, ...]:
    return tuple(find(name) for name in names())


def find(name: str) -> CodingAgent:
    """The coding agent with this name. An unknown one speaks the plain dialect and has nothing else."""
    module = name.replace("-", "_")
    if module.isidentifier() and module not in _SHARED_MODULES:
        try:
            client: CodingAgent = import_module(f"limpet.clients.{module}").CLIENT
        except ModuleNotFoundError:
            pass
        else:
            return client
    unknown: CodingAgent = import_module("limpet.clients.base").CodingAgent(name)
    return unknown


def detect(payload: Mapping[str, Any]) -> CodingAgent:
    """The agent that sent a hook payload, where the command does not name it: by the environment, or the payload."""
    clients = sorted(every(), key=lambda client: client.copied_variables)
    for client in clients:
        if not client.copied_variables and settings.first_set(client.variables):
            return client
    for client in clients:
        if client.recognises(payload) or (client.copied_variables and settings.first_set(client.variables)):
            return client
    return find(_UNRECOGNISED)


def runs_for_another(client: CodingAgent, session: str) -> bool:
    """Whether another agent runs the hooks of this one, which are installed in the same project.

    A variable of the other agent may also come from a terminal in it: then the agent's own session variable tells.
    """
    if session and session == settings.first_set(client.session_variables):
        return False
    return any(settings.first_set(find(name).variables) for name in client.hooks_also_run_by)


def run_by_plugin() -> bool:
    """Whether an agent runs this process for a plugin of its own."""
    return bool(settings.first_set(client.plugin_variable for client in every() if client.plugin_variable))


def session_variables() -> tuple[str, ...]:
    """The environment variables that hold the session id of an agent, in the order they are looked at."""
    return (*(name for client in every() for name in client.session_variables), _GENERIC_SESSION)


def session_id() -> str | None:
    """The session of the agent that started this process, if the environment names one."""
    if not settings.any_variable_ends_with(_SESSION_SUFFIX):
        return None
    return settings.first_set(session_variables()) or None
