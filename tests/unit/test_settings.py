"""Settings: which of arguments, environment, the person's config file and default decides, and what values may be.

Which project a folder belongs to, and what of a repository counts, is in test_home.py.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import limpet
from docs import make_settings
from limpet import errors, settings
from limpet.home import load as home_load
from person import configure, project_folder, store_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a folder deep inside it."""
    (tmp_path / "project" / ".limpet").mkdir(parents=True)
    (tmp_path / "project" / "src" / "deep").mkdir(parents=True)
    return tmp_path / "project"


def overrides(**keys: object) -> str:
    """LIMPET_SET; a double underscore is a dot."""
    return ";".join(f"{key.replace('__', '.')}={value}" for key, value in keys.items())


def load(folder: Path, store: str | None = None, project: str | None = None, **env: str) -> settings.Settings:
    return home_load.load(store, project, folder=str(folder), environment={"HOME": os.environ["HOME"], **env})


# --- where the store is -----------------------------------------------------------------------------------------------


def test_the_project_is_found_from_deep_inside(root: Path) -> None:
    found = load(root / "src" / "deep")
    assert (found.root, found.store) == (str(root), str(store_of(root)))
    assert (found.project, found.tenant) == ("default", "local")


def test_the_store_is_in_the_data_folder_of_the_person(root: Path, home: Path, tmp_path: Path) -> None:
    id = str(project_folder(root).id)
    assert load(root).store == str(home / ".local" / "share" / "limpet" / "projects" / id / "limpet.db")
    base = tmp_path / "data"
    assert load(root, XDG_DATA_HOME=str(base)).store == str(base / "limpet" / "projects" / id / "limpet.db")
    assert load(root, LIMPET_HOME=str(base)).store == str(base / "projects" / id / "limpet.db")


def test_the_nearest_sign_of_a_project_counts(root: Path) -> None:
    inner = root / "src" / "deep"
    assert load(inner).root == str(root)
    (inner / "pyproject.toml").touch()
    assert load(inner).root == str(inner)
    assert load(inner).store != load(root).store


def test_files_in_place_of_folders_are_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "project" / ".git").touch()
    (tmp_path / "project" / "sub" / ".limpet").touch()
    assert load(tmp_path / "project" / "sub").root == str(tmp_path / "project" / "sub")


def test_the_current_folder_and_environment_are_the_default(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "src")
    assert home_load.load().store == str(store_of(root))
    monkeypatch.setenv("LIMPET_STORE", str(root / "shared.db"))
    monkeypatch.setenv("LIMPET_PROJECT", "named")
    assert home_load.load()[:2] == (str(root / "shared.db"), "named")


def test_a_name_without_a_store_is_a_project_of_its_own_in_the_data_folder(root: Path) -> None:
    named = load(root, project="papers")
    assert (named.name, named.project, named.own_store) == ("papers", "default", True)
    assert named.store not in (load(root).store, load(root, project="other").store)
    assert load(root / "src", LIMPET_PROJECT="papers").store == named.store
    assert load(root, project="project").store == load(root).store, "this project, by its name"


# --- who decides ------------------------------------------------------------------------------------------------------


def test_arguments_win_over_environment_over_config_over_default(root: Path) -> None:
    path = configure('store = "mine.db"\nproject = "mine"\nnote_max_chars = 11\nnotepad_budget_tokens = 12\n')
    found = load(root)
    assert (found.store, found.project) == (str(path.parent / "mine.db"), "mine")
    assert found.bounds == settings.Bounds(note_max_chars=11, notepad_budget_tokens=12)
    env = {"LIMPET_STORE": "from-env.db", "LIMPET_PROJECT": "from-env", "LIMPET_SET": "note_max_chars=21"}
    found = load(root, **env)
    assert (found.store, found.project) == ("from-env.db", "from-env")
    assert (found.bounds.note_max_chars, found.bounds.notepad_budget_tokens) == (21, 12)
    found = load(root, "argument.db", "argument", **env)
    assert (found.store, found.project) == ("argument.db", "argument")


def test_an_empty_variable_is_as_good_as_none(root: Path) -> None:
    configure('store = "/mine.db"\nnote_max_tags = 3\n')
    found = load(
        root, LIMPET_STORE="", LIMPET_PROJECT="", LIMPET_TENANT="", LIMPET_TOKEN="", LIMPET_SET="note_max_tags="
    )
    assert (found.store, found.tenant, found.token) == ("/mine.db", "local", None)
    assert found.bounds.note_max_tags == 3


def test_a_shared_store_is_divided_by_a_name_for_each_folder(root: Path, tmp_path: Path) -> None:
    names = {load(root, "/somewhere/shared.db").project, load(root / "src", LIMPET_STORE="postgresql://db/x").project}
    assert names == {project_folder(root).label}
    assert re.fullmatch("project-[0-9a-f]{8}", names.pop())
    assert load(tmp_path, str(store_of(root))).project == "default", "a project's own store, by its path"
    (tmp_path / "elsewhere" / "project").mkdir(parents=True)
    assert load(tmp_path / "elsewhere" / "project", "/somewhere/shared.db").project != project_folder(root).label


def test_the_session_comes_from_the_environment(root: Path) -> None:
    assert load(root).session is None
    assert load(root, LIMPET_SESSION="ours").session == "ours"


def test_tenant_and_token_come_from_the_environment(root: Path) -> None:
    found = load(root, LIMPET_TENANT="team", LIMPET_TOKEN="secret")
    assert (found.tenant, found.token) == ("team", "secret")


def test_every_bound_can_be_set_both_ways(root: Path) -> None:
    names = [name for name, value in settings.Bounds()._asdict().items() if type(value) is int]
    configure("\n".join(f"{name} = 7" for name in names))
    make: Any = settings.Bounds
    assert load(root).bounds == make(**dict.fromkeys(names, 7))
    env = overrides(**dict.fromkeys(names, 9))
    assert load(root, LIMPET_SET=env).bounds == make(**dict.fromkeys(names, 9))


def test_every_rule_for_the_window_can_be_set_both_ways(root: Path) -> None:
    names = settings.WindowRules._fields
    configure("\n".join(["[window]", *(f"{name} = 7" for name in names)]))
    assert load(root).bounds.window == settings.WindowRules(*[7] * len(names))
    env = overrides(**{f"window.{name}": 9 for name in names})
    assert load(root, LIMPET_SET=env).bounds.window == settings.WindowRules(*[9] * len(names))
    configure("window = 3")
    with pytest.raises(errors.BadInput, match="it must be a table of settings"):
        load(root)


def test_every_rule_for_outputs_can_be_set_both_ways(root: Path) -> None:
    numbers = [name for name, value in settings.OutputRules()._asdict().items() if type(value) is int]
    switches = [name for name, value in settings.OutputRules()._asdict().items() if type(value) is bool]
    lines = [f"{name} = 7" for name in numbers] + [f"{name} = false" for name in switches]
    configure("\n".join(["[outputs]", *lines]))
    make: Any = settings.OutputRules  # which field is of which type was worked out above
    wanted = make(**dict.fromkeys(numbers, 7), **dict.fromkeys(switches, False))
    assert load(root).bounds.outputs == wanted
    env = overrides(**{f"outputs.{name}": 9 for name in numbers}, **{f"outputs.{name}": "on" for name in switches})
    wanted = make(**dict.fromkeys(numbers, 9), **dict.fromkeys(switches, True))
    assert load(root, LIMPET_SET=env).bounds.outputs == wanted
    for bad in ("outputs = 3", "[outputs]\nenabled = 1", "[outputs]\nmax_age = true"):
        configure(bad)
        with pytest.raises(errors.BadInput):
            load(root)


def test_meaning_can_be_switched_off_both_ways(root: Path) -> None:
    assert load(root).bounds.recall.meaning is True
    assert load(root, LIMPET_SET="recall.meaning=no").bounds.recall.meaning is False
    configure("[recall]\nmeaning = false")
    assert load(root).bounds.recall.meaning is False
    assert load(root, LIMPET_SET="recall.meaning=yes").bounds.recall.meaning is True


def test_rules_for_tools(root: Path) -> None:
    text = """
    strict = true
    [outputs.tools."files__*"]
    threshold_bytes = 100
    [outputs.tools.search]
    keep = "never"
    redact = false
    """
    configure(text)
    assert load(root).strict is True
    assert load(root, LIMPET_STRICT="no").strict is False
    assert load(root).bounds.outputs.tools == (
        settings.ToolRule("files__*", "auto", 100, True),
        settings.ToolRule("search", "never", 0, False),
    )


@pytest.mark.parametrize(
    "bad",
    [
        "[outputs]\ntools = 3",
        "[outputs.tools]\na = 3",
        "[outputs.tools.a]\nkeep = 'sometimes'",
        "[outputs.tools.a]\nthreshold_bytes = 0",
        "[outputs.tools.a]\nthreshold_bytes = true",
        "[outputs.tools.a]\nredact = 'perhaps'",
        "[outputs.tools.a]\nlimit = 1",
        "strict = 5",
    ],
)
def test_rules_for_tools_that_cannot_be_meant(root: Path, bad: str) -> None:
    configure(bad)
    with pytest.raises(errors.BadInput, match="the setting "):
        load(root)


def test_variables_that_hold_secrets_of_others() -> None:
    env = {"THEIRS": "x", "EMPTY": "", "LIMPET_TOKEN": "ours"}
    assert settings.variable("THEIRS", env) == "x"
    for name in ("EMPTY", "NOTHING", "LIMPET_TOKEN"):
        with pytest.raises(errors.BadInput) as caught:
            settings.variable(name, env)
        assert "ours" not in caught.value.message


def test_every_rule_for_the_journal_can_be_set_both_ways(root: Path) -> None:
    numbers = [name for name, value in settings.JournalRules()._asdict().items() if type(value) is int]
    configure("\n".join(["[journal]", 'file = "docs/notes.md"', *(f"{name} = 7" for name in numbers)]))
    make: Any = settings.JournalRules
    assert load(root).bounds.journal == make("docs/notes.md", **dict.fromkeys(numbers, 7))
    env = overrides(journal__file="x.md", **{f"journal.{name}": 9 for name in numbers})
    assert load(root, LIMPET_SET=env).bounds.journal == make("x.md", **dict.fromkeys(numbers, 9))
    for bad in ("journal = 3", "[journal]\nfile = 1", "[journal]\nkeep_log_rows = true"):
        configure(bad)
        with pytest.raises(errors.BadInput):
            load(root)


def test_the_folder_of_the_project_is_known_and_can_be_named(root: Path, tmp_path: Path) -> None:
    assert load(root).root == str(root)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert home_load.load(environment={"LIMPET_FOLDER": str(elsewhere)}).root == str(elsewhere)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("12h", 43_200), ("30D", 2_592_000)]
)
def test_a_duration_may_have_a_unit(root: Path, text: str, seconds: int) -> None:
    assert load(root, LIMPET_SET=f"outputs.max_age={text}").bounds.outputs.max_age == seconds
    configure(f'[outputs]\nmax_age = "{text}"')
    assert load(root).bounds.outputs.max_age == seconds


def test_every_key_of_the_config_file_can_be_set_by_one_variable(root: Path) -> None:
    values = {bool: "off", int: "7", str: "x", tuple: "a, b", type(None): "x"}
    for key, default in settings.all_keys().items():
        if key != "outputs.tools":
            value = settings.WORDS[key][-1] if key in settings.WORDS else values[type(default)]
            loaded = load(root, LIMPET_SET=f" {key} = {value} ;")
            assert loaded != load(root) or key == "strict", key
    tools = "outputs.tools.files.read_*.keep=never;outputs.tools.files.read_*.threshold_bytes=9"
    assert load(root, LIMPET_SET=tools).bounds.outputs.tools == (settings.ToolRule("files.read_*", "never", 9),)
    configure('[outputs.tools."files.read_*"]\nredact = false\n[outputs]\nmax_age = 5')
    both = load(root, LIMPET_SET=tools).bounds.outputs
    assert (both.tools, both.max_age) == ((settings.ToolRule("files.read_*", "never", 9, False),), 5)


def test_the_variable_named_after_a_key_wins_over_the_one_for_all_keys(root: Path) -> None:
    loaded = load(root, "x.db", LIMPET_SET="project=all;strict=on", LIMPET_PROJECT="named", LIMPET_STRICT="off")
    assert (loaded.project, loaded.strict) == ("named", False)


def test_every_variable_that_is_read_is_in_the_table() -> None:
    """At most 15 of them; tests/house_measures.py counts them in all modules."""
    source = Path(settings.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r"LIMPET_[A-Z_]+", source)) == settings.VARIABLES.keys()
    assert len(settings.VARIABLES) <= 15


def test_the_page_of_all_settings_is_current_and_complete() -> None:
    page = Path(make_settings.__file__).with_name("settings.md").read_text(encoding="utf-8")
    assert page == make_settings.document(), "The settings changed: run `make docs`."
    for key in settings.all_keys():
        if key != "outputs.tools":
            assert f"| `{key.rpartition('.')[2]}` |" in page
    units = {unit for unit, _ in make_settings.comments().values()}
    assert all(unit.isalpha() for unit in units), "The comment of a field is `unit: reason`."


# --- bad values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "1e3", "9d"])
def test_a_bound_in_the_environment_is_a_whole_number_above_nothing(root: Path, value: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        load(root, LIMPET_SET=f"note_max_chars={value}")
    assert caught.value.code == "bad_setting"
    assert f"the setting note_max_chars is {value!r}; it must be a whole number above 0" in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("outputs.max_ages=5", "there is no setting 'outputs.max_ages'; the nearest is outputs.max_age"),
        ("max_age=5", "there is no setting 'max_age'; the nearest is outputs.max_age"),
        ("outputs.tools.keep=never", "there is no setting 'outputs.tools.keep'"),
        ("outputs.max_age.x=5", "there is no setting 'outputs.max_age.x'"),
        ("outputs=5", "there is no setting 'outputs'"),
        ("window.limit", "the setting LIMPET_SET is 'window.limit'; each of its parts must be key=value"),
        ("window.limit=big", "the setting window.limit is 'big'; it must be a whole number above 0"),
        ("outputs.max_age=30y", "the setting outputs.max_age is '30y'; it must be a whole number of seconds"),
        ("outputs.enabled=perhaps", "the setting outputs.enabled is 'perhaps'; it must be true or false"),
        ("outputs.tools.a.b=1", "it takes keep, threshold_bytes, redact"),
    ],
)
def test_a_bad_part_of_the_variable_for_all_keys(root: Path, text: str, words: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        load(root, LIMPET_SET=f"window.limit=5;{text}")
    assert words in caught.value.message


@pytest.mark.parametrize("value", ["0", "-1", '"many"', "1.5", "true", "[1]", "{}"])
def test_a_bound_in_the_config_is_a_whole_number_above_nothing(root: Path, value: str) -> None:
    configure(f"note_max_chars = {value}\n")
    with pytest.raises(errors.BadInput, match="the setting note_max_chars is"):
        load(root)


def test_a_key_that_does_not_exist_names_the_file_that_has_it(root: Path) -> None:
    path = configure("[projects.x.outputs]\nmax_ages = 5\n")
    with pytest.raises(errors.BadInput) as caught:
        load(root)
    assert f"the nearest is outputs.max_age. Correct {path} and start again" in caught.value.message
    configure("[outputs]\n[outputs.tools]\n[window]\n[projects.x]\n")
    assert load(root).bounds == settings.Bounds(), "empty tables say nothing"


@pytest.mark.parametrize("name", ["store", "project"])
def test_a_name_in_the_config_is_a_text(root: Path, name: str) -> None:
    configure(f"{name} = 7\n")
    with pytest.raises(errors.BadInput, match=f"the setting {name} is 7; it must be a string"):
        load(root)


@pytest.mark.parametrize("content", [b"store = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_config_that_is_not_toml_names_its_file(root: Path, content: bytes) -> None:
    configure(content)
    with pytest.raises(errors.BadInput) as caught:
        load(root)
    assert caught.value.code == "bad_setting"
    assert "config.toml" in caught.value.message


def test_an_address_that_is_no_store(root: Path) -> None:
    for address in ("mysql://db/x", "https://example.test/x"):
        with pytest.raises(errors.BadInput, match="it must be a path or a postgresql:// address"):
            limpet.open(address, folder=str(root))


def test_the_replica_of_a_store_comes_from_environment_or_file(root: Path) -> None:
    assert load(root).store_replica is None
    configure('store_replica = "postgresql://two/limpet"\n')
    assert load(root).store_replica == "postgresql://two/limpet"
    assert load(root, LIMPET_STORE_REPLICA="postgresql://three/limpet").store_replica == "postgresql://three/limpet"
    configure("store_replica = 1\n")
    with pytest.raises(errors.BadInput, match="store_replica"):
        load(root)
