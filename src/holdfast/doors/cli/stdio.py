"""`holdfast mcp` and `holdfast wrap` without click: clients start them anew at every launch and wait for them.

Their few options are read by hand.
"""

from __future__ import annotations

from typing import NamedTuple

OPTIONS = ("store", "project", "session", "profile")
WRAP_OPTIONS = ("store", "project", "session", "threshold")
DEFAULT_PROFILE = "core"


class Wanted(NamedTuple):
    """The options of `holdfast mcp`, as given."""

    store: str | None = None
    project: str | None = None
    session: str | None = None
    profile: str = DEFAULT_PROFILE


class Wrapped(NamedTuple):
    """The options of `holdfast wrap`, as given, and the command that starts the server behind it."""

    command: tuple[str, ...]
    store: str | None = None
    project: str | None = None
    session: str | None = None
    threshold: str | None = None


def recognise(args: list[str]) -> Wanted | Wrapped | None:
    """The options, or None when this is another command, or one with anything unusual, which is left to click."""
    if "--" in args and "wrap" in args[: args.index("--")]:
        return _wrapped(args)
    return _mcp(args) if "mcp" in args else None


def _wrapped(args: list[str]) -> Wrapped | None:
    end = args.index("--")
    given: dict[str, str] = {}
    command, rest, behind = "", args[:end], tuple(args[end + 1 :])
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            if command or word != "wrap":
                return None
            command = word
        elif name not in WRAP_OPTIONS or (name == "threshold" and not command) or not (equals or rest):
            return None
        else:
            given[name] = value if equals else rest.pop(0)
    # What is no number is for click to refuse in its own words.
    usual = command and behind and given.get("threshold", "1").isdecimal()
    return Wrapped(behind, **given) if usual else None


def _mcp(args: list[str]) -> Wanted | None:
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


def run(wanted: Wanted | Wrapped) -> int:
    """Serve one client until it goes away."""
    return wrap(wanted) if isinstance(wanted, Wrapped) else mcp(wanted)


def wrap(wanted: Wrapped) -> int:
    """Stand in front of one server; its exit code."""
    from holdfast import settings
    from holdfast.doors import wrap

    def load() -> settings.Settings:
        chosen = settings.load(wanted.store, wanted.project)
        if wanted.threshold is None:
            return chosen
        outputs = chosen.bounds.outputs._replace(threshold_bytes=int(wanted.threshold))
        return chosen._replace(bounds=chosen.bounds._replace(outputs=outputs))

    return wrap.serve(wanted.command, load, wanted.session)


def mcp(wanted: Wanted) -> int:
    from holdfast import settings, wiring
    from holdfast.doors import mcp_stdio
    from holdfast.operations.catalogue import profile

    profile(wanted.profile)  # a wrong name must not make a store first
    chosen = settings.load(wanted.store, wanted.project)
    with wiring.open_with(chosen, session=wanted.session) as hold:
        mcp_stdio.serve(hold, wanted.profile, wanted.session)
    return 0
