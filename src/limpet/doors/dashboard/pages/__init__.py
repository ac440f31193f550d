"""The pages of the dashboard, one file per subject. A file lists its pages in PAGES; there is no other list of them."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from limpet.doors.dashboard.view import PageRow

_MODULES = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
LISTED: tuple[PageRow, ...] = tuple(page for module in _MODULES for page in module.PAGES)
PAGES: Mapping[str, PageRow] = {page.name: page for page in LISTED}
NAVIGATION = tuple(sorted((page for page in LISTED if page.menu), key=lambda page: page.place))
