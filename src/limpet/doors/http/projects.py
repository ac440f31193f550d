"""The projects that a server has open, over one store. Each is opened at its first request."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

from limpet.importers import sample
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
        self._sample: ServedProject | None = None
        self._sample_mark = 0  # of the file that is open; the sample can be deleted and made again

    @property
    def home(self) -> Limpet:
        return self._home

    def get(self, tenant: str, project: str, *, with_sample: bool = False) -> ServedProject:
        """The project. `with_sample`: for the one person of a local server, this machine's sample has a name too."""
        scope = Scope(tenant, project)
        if scope == self._home.scope:
            return ServedProject(self._home, has_folder=True)
        with self._lock:
            if with_sample and project == sample.PROJECT and not self._is_stored(scope):
                return self._opened_sample(tenant)
            opened = self._open.pop(scope, None) or ServedProject(self._home.elsewhere(scope), has_folder=False)
            self._open[scope] = opened
            while len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)
        return opened

    def _is_stored(self, scope: Scope) -> bool:
        """Whether a project of that name is in the store: then it is meant, and not the sample."""
        return scope.project in self._home.store.projects(scope.tenant)

    def _opened_sample(self, tenant: str) -> ServedProject:
        mark = sample.mark()
        if self._sample is None or mark != self._sample_mark or not mark:
            if self._sample is not None:
                self._sample.hold.close()
            self._sample = None
            self._sample, self._sample_mark = ServedProject(sample.open_sample(tenant), has_folder=True), mark
        return self._sample
