"""Settings for work in a folder: arguments, then the environment, the person's config file, the repository's, defaults.

Stores and projects that a client's configuration names (`limpet mcp --store …`) count after `limpet trust`, because
repositories ship such configurations too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping

from limpet import errors, settings
from limpet.home import place as places
from limpet.home import trust
from limpet.home.folders import OFF, Home, ProjectFolder, Record
from limpet.home.place import FOLDER, NAMED, Place
from limpet.light import Any
from limpet.model import Folder
from limpet.record import NamedTuple
from limpet.settings import Bounds, Settings, text_value

CONFIG_BYTES = 1 << 20
OWN = "own"  # in a table [projects."PATH"] of the person's file: this folder is a project of its own
SHIPPED = f"{trust.FOLDER}/{trust.SKILLS}"  # of a repository
OWN_SKILLS = Folder("", "skills")  # in the project's folder, wherever that will be


class Person(NamedTuple):
    """The person's config file."""

    path: str
    config: dict[str, Any]
    projects: dict[str, dict[str, Any]]  # by path or id

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)


def load(
    store: str | None = None,
    project: str | None = None,
    *,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    server: bool = False,
    by_client: bool = False,
) -> Settings:
    """Settings for work in a folder. Arguments win over everything.

    `server`: a program that clients start anywhere. `by_client`: the arguments are those of a client's configuration.
    """
    env = settings.process_environment() if environment is None else environment
    paths = settings.paths(env)
    home = Home(paths.data)
    home.check(paths.home)
    person = read_person(paths.config)
    place, is_personal = _place(folder or env.get("LIMPET_FOLDER"), paths, person, server)
    if by_client:
        _refuse_untrusted(home, place, store, project)
    store = store or env.get("LIMPET_STORE")
    project = project or env.get("LIMPET_PROJECT")
    own = ProjectFolder(home, place)
    belief, wrong = _without_wrong_values(trust.believe(home, place), place)
    belief, unseen = _without_unseen_skills(belief, place)
    table = _table(person, own)
    for part in (person.config, table):
        _check_values(part, person.path)
    layers = [belief.config, _absolute(person.config, person.folder), _absolute(table, person.folder)]
    config = _merged([*layers, settings.overrides(env.get("LIMPET_SET") or "")])
    store = store or text_value("store", _named_store(config, belief.config, place.root))
    project = project or text_value("project", config.get("project"))
    if project and not store:
        own = named_project(home, own, project)
    return Settings(
        store or own.store,
        (project or _default_project(home, own, store)) if store else "default",
        settings.check_tenant(env.get("LIMPET_TENANT") or settings.TENANT),
        env.get("LIMPET_SESSION") or None,
        env.get("LIMPET_TOKEN") or None,
        _switched(settings.rules_of(Bounds(), config), own),
        _skills(config, lambda: trust.believe(home, place).skills, env, place.root, shipped=belief.skills),
        settings.switch_value("strict", env.get("LIMPET_STRICT") or config.get("strict", False)),
        place.root,
        env.get("LIMPET_STORE_REPLICA") or text_value("store_replica", config.get("store_replica")) or None,
        text_value("name", config.get("name")) or own.place.name,
        own,
        not store,
        belief.ignored,
        (*_remarks(belief, own, is_personal), *wrong, *unseen),
    )


def current_place() -> Place:
    """Where the person works, also when the settings there cannot be used."""
    env = settings.process_environment()
    paths = settings.paths(env)
    return _place(env.get("LIMPET_FOLDER"), paths, read_person(paths.config), server=False)[0]


def off_file(own: ProjectFolder) -> str | None:
    """The file that switches the hooks off in a project; None if the project has no folder yet."""
    return own.path and os.path.join(own.path, OFF)


# --- which project ----------------------------------------------------------------------------------------------------


def _place(folder: str | None, paths: settings.Paths, person: Person, server: bool) -> tuple[Place, bool]:
    start = folder or os.getcwd()
    if server and folder is None and places.is_nowhere(start, paths.home):
        return places.personal(os.path.realpath(start)), True
    place = places.locate(start, paths.shared)
    path = os.path.realpath(start)
    while path != os.path.dirname(path):
        if person.projects.get(path, {}).get(OWN):
            return Place(path, FOLDER, path), False
        if path == place.root:
            break
        path = os.path.dirname(path)
    return place, False


def named_project(home: Home, current: ProjectFolder, name: str) -> ProjectFolder:
    """The project with this id, path or name; a new one of that name if there is none."""
    records = list(home.records())
    for record in records:
        if name in (record.id, record.path) or (len(name) >= 8 and record.id.startswith(name)):
            return _recorded(home, current, record)
    if name == current.place.name:
        return current
    matches = [record for record in records if record.name == name]
    if len(matches) > 1:
        raise errors.ambiguous_project(name, [record.id for record in matches])
    return (
        _recorded(home, current, matches[0]) if matches else ProjectFolder(home, Place(current.place.root, NAMED, name))
    )


def _recorded(home: Home, current: ProjectFolder, record: Record) -> ProjectFolder:
    return ProjectFolder(home, Place(current.place.root, record.kind, record.path), record.see or record.id)


def project_names() -> list[str]:
    """The names of the projects in the data folder."""
    home = Home(settings.data_folder())
    return sorted({record.name for record in home.records() if not record.see})


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence for a message that names what was probably meant."""
    import difflib  # late: for mistakes

    matches = difflib.get_close_matches(name, known, 3, 0.5)
    return f"Did you mean {' or '.join(matches)}? " if matches else ""


def _refuse_untrusted(home: Home, place: Place, store: str | None, project: str | None) -> None:
    trusted = trust.trusted_stores(home)
    for option, value in (("store", store), ("project", project)):
        if value and option_text(option, value) not in trusted:
            raise errors.untrusted_option(f"--{option} {value}", f"limpet trust --{option} {value}")


def option_text(option: str, value: str) -> str:
    """How trust in an option of a client's configuration is remembered."""
    is_path = option == "store" and "://" not in value
    return f"{option} {os.path.realpath(value) if is_path else value}"


# --- the layers -------------------------------------------------------------------------------------------------------


def read_person(path: str) -> Person:
    """The person's config file. What is wrong with it is an error, because the person wrote it."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise errors.bad_config_file(path, "it is no plain file")
            if os.name == "posix" and info.st_uid not in (os.geteuid(), 0):
                raise errors.not_ours(path, "it belongs to another user")
            content = file.read(CONFIG_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return Person(path, {}, {})
    except OSError as problem:
        if not os.path.lexists(path):
            return Person(path, {}, {})  # in a home that this user cannot enter
        raise errors.bad_config_file(path, problem.strerror or str(problem)) from None
    try:
        config = trust.parse(content)
    except ValueError as problem:
        raise errors.bad_setting("file " + path, "unreadable", f"it must be TOML ({problem})") from None
    tables = config.pop("projects", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise errors.bad_setting("projects", tables, "it must be a table for each project")
    for part in (config, *tables.values()):
        settings.check_file({key: value for key, value in part.items() if key != OWN}, path)
    return Person(path, config, {os.path.expanduser(name): table for name, table in tables.items()})


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for a writer


def _check_values(config: Mapping[str, Any], path: str) -> None:
    try:
        settings.check_values(config)
    except errors.BadInput as problem:
        raise errors.BadInput(problem.code, f"{path}: {problem.message}") from None


def _without_wrong_values(belief: trust.Belief, place: Place) -> tuple[trust.Belief, list[str]]:
    """Leave out what is of a wrong type in a repository's file, where the default does no harm, and say so."""
    path = os.path.join(place.root, trust.FOLDER, trust.CONFIG)
    config: dict[str, Any] = {}
    remarks = []
    for keys, value in _leaves(belief.config):
        single: Any = value
        for key in reversed(keys):
            single = {key: single}
        try:
            _check_values(single, path)
            config = settings.merged(config, single)
        except errors.BadInput as problem:
            if not ".".join(keys).startswith(settings.HARMLESS_DEFAULTS):
                raise
            remarks.append(f"{problem.message} Until then the default counts.")
    return belief._replace(config=config), remarks


def _without_unseen_skills(belief: trust.Belief, place: Place) -> tuple[trust.Belief, list[str]]:
    """Leave out directories inside the repository that its configuration names. Trusting it did not show what they
    hold, and a change of that would not ask again. The skills in .limpet/skills are shown and compared."""
    value = belief.config.get(trust.SKILLS)
    if value is None:
        return belief, []
    base = os.path.join(place.root, trust.FOLDER)
    folders = settings.skill_folders(value, base)
    outside = [folder.label for folder in folders if not _is_inside(folder.path, place.root)]
    config = {name: value for name, value in belief.config.items() if name != trust.SKILLS}
    belief = belief._replace(config={**config, trust.SKILLS: outside} if outside else config)
    if all(
        _is_inside(folder.path, os.path.join(base, trust.SKILLS)) for folder in folders if folder.label not in outside
    ):
        return belief, []
    file = _line(os.path.join(base, trust.CONFIG))
    return belief, [f"{file} names skills in other folders of the repository than {SHIPPED}; they do not count."]


def _is_inside(path: str, root: str) -> bool:
    """Whether a path leads into a folder, by its words or through links."""
    places_of = (os.path.abspath, os.path.realpath)
    return any(f"{place(path)}{os.sep}".startswith(f"{place(root).rstrip(os.sep)}{os.sep}") for place in places_of)


def _leaves(config: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterable[tuple[tuple[str, ...], Any]]:
    for name, value in config.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _table(person: Person, own: ProjectFolder) -> dict[str, Any]:
    # Not by name: another repository of that name would get the settings too.
    names = (own.id or "", own.place.key, own.place.root)
    return _merged(person.projects.get(name, {}) for name in names)


def _absolute(config: dict[str, Any], base: str) -> dict[str, Any]:
    """The configuration with paths made absolute: a relative one is relative to the file that says it."""
    changed = dict(config)
    if isinstance(store := config.get("store"), str) and "://" not in store:
        changed["store"] = os.path.join(base, os.path.expanduser(store))
    if (value := config.get("skills")) is not None:
        changed["skills"] = [folder.path for folder in settings.skill_folders(value, base)]
    return changed


def _default_project(home: Home, own: ProjectFolder, store: str) -> str:
    """A store in the data folder belongs to one project, also when its path is given."""
    is_ours = os.path.abspath(store).startswith(os.path.join(home.path, "projects") + os.sep)
    return "default" if is_ours else own.label


def _named_store(config: Mapping[str, Any], of_repository: Mapping[str, Any], root: str) -> object:
    store = config.get("store")
    if isinstance(store, str) and store == of_repository.get("store"):
        return _absolute({"store": store}, os.path.join(root, trust.FOLDER))["store"]
    return store


def _merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for layer in layers:
        config = settings.merged(config, layer)
    return config


def _skills(
    config: Mapping[str, Any], trusted: Callable[[], bool], env: Mapping[str, str], root: str, *, shipped: bool
) -> tuple[Folder, ...]:
    """The directories with skills. By default the project's own, and the repository's once they are trusted, for as
    long as they are: a checkout may change them under a server."""
    base = os.path.join(root, trust.FOLDER)
    if variable := env.get("LIMPET_SKILLS"):
        return settings.skill_folders(variable.split(os.pathsep), os.getcwd())
    if config.get("skills") is not None:
        return settings.skill_folders(config["skills"], base)
    brought = Folder(os.path.join(root, SHIPPED), SHIPPED, trusted)
    return (OWN_SKILLS, brought) if shipped else (OWN_SKILLS,)


def _switched(bounds: Bounds, own: ProjectFolder) -> Bounds:
    path = off_file(own)
    if path is None or not os.path.exists(path):
        return bounds
    return bounds._replace(hooks=bounds.hooks._replace(enabled=False))


def _line(text: str) -> str:
    """A text with a name that the author of a repository chose, for a place of one line."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _recognised(ignored: Iterable[str]) -> str:
    """The ignored keys that Limpet has, and the number of the others: those are the author's own words."""
    valid_keys = [trust.SKILLS, *settings.all_keys()]
    names = dict.fromkeys("outputs.tools" if key.startswith("outputs.tools.") else key for key in ignored)
    others = len(names.keys() - set(valid_keys))
    parts = [name for name in names if name in valid_keys]
    return ", ".join([*parts, f"{others} that are no settings of Limpet"] if others else parts)


def _remarks(belief: trust.Belief, own: ProjectFolder, is_personal: bool) -> Iterable[str]:
    """What the person should know about where this works and what was left out."""
    folder = _line(os.path.join(own.place.root, trust.FOLDER))
    if is_personal:
        yield "this was started in no project, so it works in the project named personal; LIMPET_FOLDER names a folder."
    if own.moved_from:
        yield f"this repository was at {_line(own.moved_from)} before; its memory came along."
    if belief.problem:
        yield f"{folder} is not read: {belief.problem}."
    if belief.ignored:
        why = "changed since it was trusted" if belief.changed else "not trusted"
        names = _recognised(belief.ignored)
        yield f"{folder} is {why}, so this does not count: {names}. `limpet trust --show` shows it."
    if belief.store:
        store = os.path.join(folder, "limpet.db")
        yield f"{store} came with the folder and is not used; `limpet import store {store}` takes it in as data."
