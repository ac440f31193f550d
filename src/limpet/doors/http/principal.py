"""Who a request comes from, and what they may do: a frozen value that the gate makes and every door is given."""

from __future__ import annotations

from enum import IntEnum

from limpet.importers import sample
from limpet.record import NamedTuple

ANY_PROJECT = "*"  # as a project of a principal: every project of their tenant


class Level(IntEnum):
    """What a principal may do. Each level includes those before it."""

    PUBLIC = 0  # no credential at all
    READ = 1
    WRITE = 2
    ADMIN = 3


LEVELS = {"read": Level.READ, "write": Level.WRITE, "admin": Level.ADMIN}  # as people write them


class Principal(NamedTuple):
    """An authenticated caller. `id` names the credential: two tokens of one person are two principals."""

    id: str
    tenant: str
    subject: str  # who it is, as history shows it; empty for the one person of a local server
    level: Level
    projects: tuple[str, ...]  # that may be used, or ANY_PROJECT
    expires_at: int | None = None  # milliseconds
    limited: bool = True  # whether rates and quotas apply
    person: bool = False  # whether the credential is a person's, who may sign in with it
    own_machine: bool = False  # the one person of a local server, who may look at the sample project too

    def may_use(self, project: str) -> bool:
        is_sample = self.own_machine and project == sample.PROJECT
        return is_sample or project in self.projects or ANY_PROJECT in self.projects

    def only_project(self) -> str | None:
        """The project that is meant when none is named."""
        single = len(self.projects) == 1 and ANY_PROJECT not in self.projects
        return self.projects[0] if single else None

    def by(self, door: str) -> str:
        """Who changed something, in the history: agent/mcp, or agent/mcp/alice."""
        return f"{door}/{self.subject}" if self.subject else door
