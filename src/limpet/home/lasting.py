"""Whether the data folder outlives the machine that it is on. In containers and CI, and in memory, it does not.

A volume is a mount of its own, on a file system that is neither memory nor the layer of a container.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from limpet import settings

CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")
MOUNTS = "/proc/self/mountinfo"
IN_MEMORY = ("tmpfs", "ramfs")
LAYERS = ("overlay", "aufs", "fuse-overlayfs")


def warnings(chosen: settings.Settings) -> list[str]:
    """That what is kept in the data folder will be gone with this machine, and the cure, if anything says so."""
    if not chosen.own_store:
        return []
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            mounts = file.read()
    except OSError:
        return []  # other systems than Linux
    container = next(filter(os.path.exists, CONTAINER_FILES), "")
    data = settings.data_folder()
    why = judged(data, mounts, container, settings.passing_machine(), named=settings.names_data_folder())
    return [f"{data} does not last: {why}. Point LIMPET_HOME at a volume."] if why else []


def judged(data: str, mounts: str, container: str, machine: str, *, named: bool) -> str:
    """Why it does not last, by the mounts, the file and the variable that tell, and whether a person chose it."""
    point, kind = _mount_of(os.path.realpath(data), mounts.splitlines())
    if kind in IN_MEMORY:
        return f"it is in memory ({kind} at {point})"
    if kind in LAYERS:
        return f"it is in the container's own layer ({kind} at {point})"
    if point != os.sep:
        return ""
    if container:
        return f"it is in a container ({container}) and on no volume"
    return f"this machine is made anew ({machine} is set)" if machine and not named else ""


def _mount_of(path: str, lines: Iterable[str]) -> tuple[str, str]:
    """The mount that holds a path, and its file system. Of two at one place the later one is seen."""
    best = ("", "")
    for line in lines:
        fields, dash, rest = line.partition(" - ")
        if not dash or len(fields.split(" ")) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
        if (path + os.sep).startswith(point.rstrip(os.sep) + os.sep) and len(point) >= len(best[0]):
            best = (point, rest.split(" ")[0])
    return best
