"""What `limpet status` says of the project: what is kept, what counts of the repository, and what went wrong lately."""

from __future__ import annotations

import os

from limpet.doors.cli import render
from limpet.doors.cli.doctor import hook_trouble
from limpet.doors.cli.run import Invocation
from limpet.home import trust
from limpet.home.folders import Home, ProjectFolder
from limpet.home.load import current_place, off_file
from limpet.light import Any
from limpet.model import HANDOFF, MEMORY, NOTE, SESSION
from limpet.settings import data_folder
from limpet.store import Listing
from limpet.text import brief

Json = dict[str, Any]
OFF = "The hooks of coding agents are off in this project; `limpet on` switches them on."
# What is counted, and what people call one of it and several.
COUNTED = {
    "notes": (NOTE, "note"),
    "memory": (MEMORY, "memory", "memories"),
    "handoffs": (HANDOFF, "handoff"),
    "sessions": (SESSION, "session"),
    "outputs": ("", "output"),
}


def of_project(cli: Invocation) -> Json:
    return {
        "counts": _counts(cli),
        "hooks": "off" if _is_off(cli) else "on",
        "trust": _trust(),
        "trouble": [finding.detail for finding in hook_trouble()],
    }


def lines(glance: Json) -> list[str]:
    counts = [brief.counted(count, *COUNTED[name][1:]) for name, count in glance["counts"].items()]
    texts = [f"Kept: {', '.join(counts)}."] if counts else []
    texts += [f"Trust: {glance['trust']}"] if glance["trust"] else []
    texts += [OFF] if glance["hooks"] == "off" else []
    return [*texts, *(f"Hooks: {why}" for why in glance["trouble"])]


def _counts(cli: Invocation) -> Json:
    if not render.exists(cli.settings.store):
        return {}
    ctx = cli.hold.context()
    counts = {
        name: ctx.store.entries.list(ctx.scope, Listing((kind,), limit=1)).total
        for name, (kind, *_) in COUNTED.items()
        if kind
    }
    return {**counts, "outputs": ctx.store.outputs.stats(ctx.scope).entries}


def _is_off(cli: Invocation) -> bool:
    data = cli.settings.data
    file = off_file(data) if isinstance(data, ProjectFolder) else None
    return file is not None and os.path.exists(file)


def _trust() -> str:
    place = current_place()
    brought = trust.read(place.root)
    if brought.problem:
        return f"what the repository brings cannot be read: {brought.problem}"
    if not brought.digest or not (brought.config or brought.skills):
        return ""
    brings = ((brought.config, "setting"), (brought.skills, "skill"))
    parts = " and ".join(brief.counted(len(part), noun) for part, noun in brings if part)
    if trust.trusted_digest(Home(data_folder()), place) == brought.digest:
        return f"all that the repository brings counts: {parts}."
    return f"the repository brings {parts}; `limpet trust --show` shows what that is."
