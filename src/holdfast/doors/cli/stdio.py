"""`holdfast mcp` without click: its few options are read by hand, because every client waits for it at every launch."""

from __future__ import annotations

from typing import NamedTuple

OPTIONS = ("store", "project", "session", "profile")
DEFAULT_PROFILE = "core"


class Wanted(NamedTuple):
    """The options of `holdfast mcp`, as given."""

    store: str | None = None
    project: str | None = None
    session: str | None = None
    profile: str = DEFAULT_PROFILE


def recognise(args: list[str]) -> Wanted | None:
    """The options, or None when this is another command, or `mcp` with anything unusual, which is left to click."""
    if "mcp" not in args:
        return None
    given: dict[str, str] = {}
    command, rest = "", list(args)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            if command or word != "mcp":
                return None
            command = word
        elif name not in OPTIONS or (name == "profile" and not command) or not (equals or rest):
            return None
        else:
            given[name] = value if equals else rest.pop(0)
    return Wanted(**given) if command else None


def run(wanted: Wanted) -> int:
    """Serve one client until it goes away."""
    from holdfast import settings, wiring
    from holdfast.doors import mcp_stdio
    from holdfast.operations.catalogue import profile

    profile(wanted.profile)  # a wrong name must not make a store first
    chosen = settings.load(wanted.store, wanted.project)
    with wiring.open_with(chosen, session=wanted.session) as hold:
        mcp_stdio.serve(hold, wanted.profile, wanted.session)
    return 0
