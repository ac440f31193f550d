"""The projects that a server has open, over one store. Each is opened at its first request."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from limpet.model import Scope
from limpet.record import NamedTuple

if TYPE_CHECKING:
    from limpet.api import Limpet

OPEN_MAX = 1_000  # kept in memory; opening one costs microseconds


class ServedProject(NamedTuple):
    hold: Limpet
    has_folder: bool  # the project that the server was started in: the one whose folder is here


class Projects:
    def __init__(self, home: Limpet) -> None:
        self._home = home
        self._open: OrderedDict[Scope, ServedProject] = OrderedDict()
        self._lock = Lock()

    @property
    def home(self) -> Limpet:
        return self._home

    def get(self, tenant: str, project: str) -> ServedProject:
        scope = Scope(tenant, project)
        if scope == self._home.scope:
            return ServedProject(self._home, has_folder=True)
        with self._lock:
            opened = self._open.pop(scope, None) or ServedProject(self._home.elsewhere(scope), has_folder=False)
            self._open[scope] = opened
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
        return opened
