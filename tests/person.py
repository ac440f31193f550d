"""A person's own files in tests: their config file, and the store of a project in their data folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from limpet import settings
from limpet.home import trust
from limpet.home.folders import Home, ProjectFolder
from limpet.home.load import option_text
from limpet.home.place import locate


def configure(text: str | bytes, environment: Mapping[str, str] | None = None) -> Path:
    """Write the person's config file."""
    path = Path(_paths(environment).config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def project_folder(folder: Path, environment: Mapping[str, str] | None = None) -> ProjectFolder:
    """The project of a folder, in the data folder of the person."""
    paths = _paths(environment)
    return ProjectFolder(Home(paths.data), locate(str(folder), paths.shared))


def store_of(folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Where the store of a folder's project is, or will be."""
    return Path(project_folder(folder, environment).store)


def trusted(store: str | Path, project: str | None = None) -> tuple[str, ...]:
    """Options of a client's configuration that the person trusts, as after `limpet trust --store … --project …`."""
    words: tuple[str, ...] = ()
    for option, value in (("store", str(store)), ("project", project)):
        if value:
            trust.trust_store(Home(settings.data_folder()), option_text(option, value), trusted=True)
            words += (f"--{option}", value)
    return words


def _paths(environment: Mapping[str, str] | None) -> settings.Paths:
    return settings.paths(settings.process_environment() if environment is None else environment)
