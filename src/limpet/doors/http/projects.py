"""The memory of each tenant and project, over one store. A room is made when somebody first enters it."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from limpet.model import Scope

if TYPE_CHECKING:
    from limpet.api import Limpet

ROOMS = 1_000  # kept ready; making one costs microseconds


class Room(NamedTuple):
    hold: Limpet
    at_home: bool  # the project that the server was started in: the one whose folder is here


class Rooms:
    def __init__(self, home: Limpet) -> None:
        self._home = home
        self._rooms: OrderedDict[Scope, Room] = OrderedDict()
        self._making = Lock()

    @property
    def home(self) -> Limpet:
        return self._home

    def enter(self, tenant: str, project: str) -> Room:
        scope = Scope(tenant, project)
        if scope == self._home.scope:
            return Room(self._home, at_home=True)
        with self._making:
            room = self._rooms.pop(scope, None) or Room(self._home.elsewhere(scope), at_home=False)
            self._rooms[scope] = room
            while len(self._rooms) > ROOMS:
                self._rooms.popitem(last=False)
        return room
