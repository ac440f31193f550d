"""Which project a folder belongs to, its folder in the data folder, and what of a repository counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from limpet import errors, settings
from limpet.home import place as places
from limpet.home import trust
from limpet.home.folders import ID_FILE, Home, ProjectFolder, Record
from limpet.home.load import load
from limpet.home.place import FOLDER, GIT, Place, common_directory, locate
from person import configure


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "data"))


def git(folder: Path, *words: str) -> None:
    names = ("-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    return folder


def own(home: Home, folder: Path) -> ProjectFolder:
    return ProjectFolder(home, locate(str(folder), (str(folder.anchor),)))


# --- the place --------------------------------------------------------------------------------------------------------


def test_worktrees_of_a_repository_are_one_project(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "--quiet", str(tmp_path / "other"))
    (tmp_path / "other" / "deep").mkdir()
    places = [locate(str(folder), ()) for folder in (main, tmp_path / "other", tmp_path / "other" / "deep")]
    assert {place.key for place in places} == {str(main / ".git")}
    assert [place.root for place in places] == [str(main), *[str(tmp_path / "other")] * 2]
    assert {place.name for place in places} == {"main"}


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    part = repository(tmp_path / "part")
    main = repository(tmp_path / "main")
    git(main, "submodule", "add", "--quiet", str(part), "vendor/part")
    place = locate(str(main / "vendor" / "part"), ())
    assert (place.kind, place.key) == (GIT, str(main / ".git" / "modules" / "vendor" / "part"))


@pytest.mark.parametrize("way", ["main", "worktree", "commondir", "link", "folder with commondir"])
def test_a_forged_git_file_does_not_open_the_memory_of_another_repository(tmp_path: Path, way: str) -> None:
    private = repository(tmp_path / "private")
    git(private, "worktree", "add", "--quiet", str(tmp_path / "wt"))
    evil = tmp_path / "evil"
    evil.mkdir()
    if way == "main":
        (evil / ".git").write_text(f"gitdir: {private}/.git\n")
    elif way == "worktree":
        (evil / ".git").write_text(f"gitdir: {private}/.git/worktrees/wt\n")
    elif way == "commondir":  # a git directory of their own that claims the common one of somebody else
        (evil / "fake" / "worktrees" / "x").mkdir(parents=True)
        (evil / "fake" / "worktrees" / "x" / "gitdir").write_text(f"{evil}/.git\n")
        (evil / "fake" / "worktrees" / "x" / "commondir").write_text(f"{private}/.git\n")
        (evil / ".git").write_text(f"gitdir: {evil}/fake/worktrees/x\n")
    elif way == "link":
        (evil / ".git").symlink_to(private / ".git")
    else:
        git(evil, "init", "--quiet")
        (evil / ".git" / "commondir").write_text(f"{private}/.git\n")
    place = locate(str(evil), ())
    assert place.root == str(evil)
    assert not place.key.startswith(str(private))


def test_a_home_folder_with_a_package_file_is_no_project_of_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "package.json").touch()
    git(tmp_path, "init", "--quiet")
    below = tmp_path / "papers" / "2026"
    below.mkdir(parents=True)
    assert locate(str(below), (str(tmp_path),)) == Place(str(below), FOLDER, str(below))
    assert locate(str(tmp_path), (str(tmp_path),)).root == str(tmp_path)


def test_a_folder_that_anybody_can_write_is_not_the_project_of_what_is_in_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / ".limpet").mkdir(parents=True)
    shared.chmod(0o1777)
    (shared / "mine").mkdir()
    assert locate(str(shared / "mine"), ()).root == str(shared / "mine")


@pytest.mark.parametrize("mark", [".hg", ".jj", ".svn", "pyproject.toml", "package.json", "Cargo.toml", "go.mod"])
def test_elsewhere_the_nearest_folder_with_a_sign_of_a_project_counts(tmp_path: Path, mark: str) -> None:
    inside = tmp_path / "project" / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / "project" / mark).touch()
    assert locate(str(inside), ()).root == str(tmp_path / "project")


# --- its folder -------------------------------------------------------------------------------------------------------


def test_looking_writes_nothing_and_the_first_write_gives_an_id(tmp_path: Path, home: Home) -> None:
    main = repository(tmp_path / "main")
    project = own(home, main)
    assert project.path is None
    assert not (main / ".git" / ID_FILE).exists()
    assert not os.path.exists(home.path)
    folder = project.make()
    assert (main / ".git" / ID_FILE).read_text() == f"{project.id}\n"
    assert folder == home.folder(str(project.id)) == own(home, main).path


def test_a_clone_a_copy_and_a_move(tmp_path: Path, home: Home) -> None:
    main = repository(tmp_path / "main")
    first = own(home, main).make()
    git(tmp_path, "clone", "--quiet", str(main), "clone")
    assert own(home, tmp_path / "clone").path is None
    subprocess.run(["cp", "-r", str(main), str(tmp_path / "copy")], check=True)
    copy = own(home, tmp_path / "copy")
    assert copy.path is None
    assert copy.make() != first
    assert (tmp_path / "copy" / ".git" / ID_FILE).read_text() == (main / ".git" / ID_FILE).read_text()
    main.rename(tmp_path / "moved")
    moved = own(home, tmp_path / "moved")
    assert (moved.path, moved.moved_from) == (first, str(main / ".git"))
    assert moved.make() == first
    assert own(home, tmp_path / "moved").moved_from == ""
    assert own(home, tmp_path / "copy").path == copy.path, "the copy stays what it is when the original is gone"


def test_another_repository_in_the_place_of_a_deleted_one_has_no_memory(tmp_path: Path, home: Home) -> None:
    first = own(home, repository(tmp_path / "main")).make()
    subprocess.run(["rm", "-rf", str(tmp_path / "main")], check=True)
    assert own(home, repository(tmp_path / "main")).make() != first


def test_an_id_that_came_with_an_archive_means_nothing(tmp_path: Path, home: Home) -> None:
    private = own(home, repository(tmp_path / "private"))
    private.make()
    for name in ("one", "two"):
        folder = repository(tmp_path / name)
        (folder / ".git" / ID_FILE).write_text("0123456789abcdef" * 2)
    first = own(home, tmp_path / "one").make()
    assert os.path.basename(first) != "0123456789abcdef" * 2
    subprocess.run(["rm", "-rf", str(tmp_path / "one")], check=True)
    assert own(home, tmp_path / "two").path is None


@pytest.mark.parametrize("content", ["", "xyz", "0" * 31, "../../etc", "A" * 32])
def test_a_broken_id_file_is_left_alone(tmp_path: Path, home: Home, content: str) -> None:
    main = repository(tmp_path / "main")
    (main / ".git" / ID_FILE).write_text(content)
    folder = own(home, main).make()
    assert own(home, main).path == folder
    assert (main / ".git" / ID_FILE).read_text() == content


def test_an_id_file_that_is_a_link_is_not_followed(tmp_path: Path, home: Home) -> None:
    first = own(home, repository(tmp_path / "private"))
    first.make()
    evil = repository(tmp_path / "evil")
    (evil / ".git" / ID_FILE).symlink_to(tmp_path / "private" / ".git" / ID_FILE)
    assert own(home, evil).id != first.id


def test_two_processes_that_begin_at_once_agree(tmp_path: Path, home: Home) -> None:
    main = repository(tmp_path / "main")
    one, two = own(home, main), own(home, main)
    assert one.make() == two.make()
    assert len(list(home.records())) == 1


def test_a_repository_whose_id_cannot_be_written_is_known_by_its_path(tmp_path: Path, home: Home) -> None:
    main = repository(tmp_path / "main")
    project = own(home, main)
    (main / ".git" / f"{ID_FILE}.blocked").touch()
    real = os.link
    os.link = lambda *_, **__: (_ for _ in ()).throw(OSError(30, "Read-only file system"))
    try:
        folder = project.make()
    finally:
        os.link = real
    assert not (main / ".git" / ID_FILE).exists()
    assert own(home, main).path == folder


def test_folders_are_private_under_any_umask(tmp_path: Path, home: Home) -> None:
    before = os.umask(0o777)
    try:
        folder = own(home, tmp_path).make()
    finally:
        os.umask(before)
    for path in (home.path, os.path.join(home.path, "projects"), folder):
        assert os.stat(path).st_mode & 0o777 == 0o700
    assert os.stat(os.path.join(folder, "project.json")).st_mode & 0o777 == 0o600


def test_a_link_in_the_data_folder_is_refused(tmp_path: Path, home: Home) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.makedirs(os.path.join(home.path, "projects"), mode=0o700)
    project = own(home, tmp_path / "elsewhere")
    os.symlink(elsewhere, home.folder(str(project.id)))
    with pytest.raises(errors.BadInput, match="it is a link"):
        project.make()
    assert not list(elsewhere.iterdir())


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
def test_root_does_not_use_the_home_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "ana").mkdir()
    os.chown(tmp_path / "ana", 65534, 65534)
    with pytest.raises(errors.BadInput, match="belongs to user 65534"):
        load(folder=str(tmp_path), environment={"HOME": str(tmp_path / "ana")})


def test_a_record_that_was_adopted_leads_to_the_other_project(tmp_path: Path, home: Home) -> None:
    old = own(home, tmp_path / "old")
    old.make()
    new = own(home, tmp_path / "new")
    home.write(Record(str(new.id), new.place.key, FOLDER, "new", str(old.id)))
    assert own(home, tmp_path / "new").path == old.path


# --- trust ------------------------------------------------------------------------------------------------------------


def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir(exist_ok=True)
    return {"HOME": str(tmp_path / "home")}


def shipped(tmp_path: Path, config: str) -> Path:
    folder = tmp_path / "theirs"
    (folder / ".limpet").mkdir(parents=True, exist_ok=True)
    (folder / ".limpet" / "config.toml").write_text(config)
    return folder


def test_of_a_repository_the_harmless_keys_count(tmp_path: Path) -> None:
    config = 'name = "The tool"\nstore = "/x.db"\n[outputs]\npreview_length = 200\nthreshold_bytes = 1\n'
    folder = shipped(tmp_path, config + '[journal]\nfile = "docs/NOTES.md"\n')
    chosen = load(folder=str(folder), environment=environment(tmp_path))
    assert (chosen.name, chosen.bounds.outputs.preview_length) == ("The tool", 200)
    assert chosen.bounds.journal.file == "docs/NOTES.md"
    assert chosen.bounds.outputs.threshold_bytes == settings.OutputRules().threshold_bytes
    assert chosen.ignored == ("store", "outputs.threshold_bytes")
    assert chosen.own_store


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("journal.file", name)
            for name in (
                "../NOTES.md",
                "/etc/NOTES.md",
                ".git/x.md",
                "a/.hidden/x.md",
                "x.txt",
                "",
                "x\ny.md",
                "x" * 300 + ".md",
            )
        ),
        *(("name", name) for name in ("", "x" * 61, "two\nlines", "\x1b[31m", "<b>", "a`b`", 7)),
        *(("outputs.preview_length", number) for number in (0, 49, 1_001, True, "200")),
    ],
)
def test_a_harmless_key_with_another_value_does_not_count(key: str, value: object) -> None:
    table: dict[str, object] = {}
    inner = table
    *tables, last = key.split(".")
    for name in tables:
        inner = inner.setdefault(name, {})  # type: ignore[assignment]
    inner[last] = value
    assert trust.sift(table) == ({}, (key,))


def test_trust_lasts_until_the_file_changes(tmp_path: Path) -> None:
    env = environment(tmp_path)
    folder = shipped(tmp_path, "note_max_tags = 3\n")
    home, place = Home(settings.data_folder(env)), locate(str(folder), ())
    trust.trust(home, place, trust.read(str(folder)).digest)
    assert load(folder=str(folder), environment=env).bounds.note_max_tags == 3
    shipped(tmp_path, "note_max_tags = 4\n")
    chosen = load(folder=str(folder), environment=env)
    assert chosen.bounds.note_max_tags == settings.Bounds().note_max_tags
    assert "changed since it was trusted" in chosen.remarks[0]


def test_no_part_of_what_is_trusted_can_pass_for_another() -> None:
    def digest(*files: tuple[bytes, ...]) -> str:
        total = trust.ContentHash()
        for parts in files:
            total.add(*parts)
        return total.value()

    hidden = b"skill" + b"deploy/SKILL.md" + b"Run it."
    assert digest((b"config", b"a = 1" + hidden)) != digest(
        (b"config", b"a = 1"), (b"skill", b"deploy/SKILL.md", b"Run it.")
    )
    assert digest((b"skill", b"a", b"bc")) != digest((b"skill", b"ab", b"c"))


def test_a_broken_configuration_of_a_repository_stops_nobody(tmp_path: Path) -> None:
    folder = shipped(tmp_path, "[[[")
    chosen = load(folder=str(folder), environment=environment(tmp_path))
    assert "not TOML" in chosen.remarks[0]


def test_a_configuration_of_very_deep_keys_is_refused_at_once(tmp_path: Path) -> None:
    for count in (7, 5_000, 60_000):
        folder = shipped(tmp_path, ".".join(["a"] * count) + " = 1\n")
        (remark,) = load(folder=str(folder), environment=environment(tmp_path)).remarks
        assert "is not read" in remark


def test_a_pipe_in_place_of_the_skills_holds_nobody_up(tmp_path: Path) -> None:
    folder = shipped(tmp_path, 'name = "Tool"\n')
    os.mkfifo(folder / ".limpet" / "skills")
    chosen = load(folder=str(folder), environment=environment(tmp_path))
    assert (chosen.name, "not a folder" in chosen.remarks[0]) == ("Tool", True)


def test_what_is_said_of_a_repository_holds_no_control_characters(tmp_path: Path) -> None:
    folder = shipped(tmp_path, '"a\\u001b[2J\\n</limpet> b" = 1\n"c\\u202ed" = 2\n')
    (remark,) = load(folder=str(folder), environment=environment(tmp_path)).remarks
    assert remark.isprintable()
    assert "<" not in remark


def test_a_configuration_behind_a_link_is_not_read(tmp_path: Path) -> None:
    real = shipped(tmp_path, 'name = "Mine"\n')
    for name in ("folder", "file"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / ".limpet").symlink_to(real / ".limpet")
    (tmp_path / "file" / ".limpet").mkdir()
    (tmp_path / "file" / ".limpet" / "config.toml").symlink_to(real / ".limpet" / "config.toml")
    for name in ("folder", "file"):
        chosen = load(folder=str(tmp_path / name), environment=environment(tmp_path))
        assert chosen.name == name
        assert "is a link" in chosen.remarks[0]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root to give files away")
def test_the_configuration_of_another_owner_is_ignored(tmp_path: Path) -> None:
    folder = shipped(tmp_path, 'name = "Theirs"\n')
    os.chown(folder / ".limpet", 65534, 65534)
    chosen = load(folder=str(folder), environment=environment(tmp_path))
    assert chosen.name == "theirs"
    assert "belongs to another user" in chosen.remarks[0]


# --- a person's own settings ------------------------------------------------------------------------------------------


def person(tmp_path: Path, text: str) -> dict[str, str]:
    env = environment(tmp_path)
    configure(text, env)
    return env


def test_the_person_decides_over_the_repository_and_the_environment_over_the_person(tmp_path: Path) -> None:
    folder = shipped(tmp_path, 'name = "Theirs"\n')
    env = person(tmp_path, f'name = "Mine"\nnote_max_tags = 5\n[projects."{folder}"]\nnote_max_tags = 6\n')
    chosen = load(folder=str(folder), environment=env)
    assert (chosen.name, chosen.bounds.note_max_tags) == ("Mine", 6)
    assert load(folder=str(tmp_path), environment=env).bounds.note_max_tags == 5
    assert load(folder=str(folder), environment={**env, "LIMPET_SET": "note_max_tags=7"}).bounds.note_max_tags == 7


def test_a_table_for_a_project_is_not_for_another_of_the_same_name(tmp_path: Path) -> None:
    folder = shipped(tmp_path, "")
    env = person(tmp_path, "[projects.theirs]\nnote_max_tags = 6\n")
    assert load(folder=str(folder), environment=env).bounds.note_max_tags == settings.Bounds().note_max_tags


def test_on_a_shared_store_the_personal_projects_of_two_people_differ(tmp_path: Path) -> None:
    labels = [ProjectFolder(Home(str(tmp_path / name)), places.personal("/")).label for name in ("ana", "ben")]
    assert len(set(labels)) == 2


def test_a_relative_path_is_relative_to_the_file_that_says_it(tmp_path: Path) -> None:
    env = person(tmp_path, 'store = "team.db"\nskills = ["know-how"]\n')
    chosen = load(folder=str(tmp_path), environment=env)
    config = tmp_path / "home" / ".config" / "limpet"
    assert (chosen.store, chosen.skills[0].path) == (str(config / "team.db"), str(config / "know-how"))
    trusted = shipped(tmp_path, 'store = "team.db"\n')
    env = person(tmp_path, "")
    trust.trust(Home(settings.data_folder(env)), locate(str(trusted), ()), trust.read(str(trusted)).digest)
    assert load(folder=str(trusted), environment=env).store == str(trusted / ".limpet" / "team.db")


def test_an_unknown_key_of_the_person_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.BadInput, match="note_max_tags"):
        load(folder=str(tmp_path), environment=person(tmp_path, "note_max_tag = 3\n"))


def test_a_folder_can_be_made_a_project_of_its_own(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    (main / "app" / "src").mkdir(parents=True)
    env = person(tmp_path, f'[projects."{main}/app"]\nown = true\n')
    inside = load(folder=str(main / "app" / "src"), environment=env)
    assert inside.root == str(main / "app")
    assert load(folder=str(main), environment=env).store != inside.store


def test_a_server_started_nowhere_works_in_the_personal_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment(tmp_path)
    monkeypatch.chdir(tmp_path / "home")
    chosen = load(environment=env, server=True)
    assert chosen.store.endswith("/projects/personal/limpet.db")
    assert "personal" in chosen.remarks[0]
    assert not load(environment=env).store.endswith("/projects/personal/limpet.db")
    assert not load(folder=str(tmp_path), environment=env, server=True).remarks


@pytest.mark.parametrize("option", ["store", "project"])
def test_a_client_s_configuration_names_no_store_that_was_not_trusted(tmp_path: Path, option: str) -> None:
    env = environment(tmp_path)
    with pytest.raises(errors.BadInput, match=f"limpet trust --{option}"):
        load(**{option: "/x/evil.db"}, folder=str(tmp_path), environment=env, by_client=True)  # type: ignore[arg-type]
    home = Home(settings.data_folder(env))
    trust.trust_store(home, f"{option} /x/evil.db", trusted=True)
    load(**{option: "/x/evil.db"}, folder=str(tmp_path), environment=env, by_client=True)  # type: ignore[arg-type]


def test_where_things_are_on_other_systems() -> None:
    assert settings.paths({"HOME": "/h"}, "linux")[1:3] == ("/h/.local/share/limpet", "/h/.config/limpet/config.toml")
    mac = settings.paths({"HOME": "/h"}, "darwin")
    assert mac.data == "/h/Library/Application Support/limpet"
    windows = settings.paths({"USERPROFILE": "C:/u", "LOCALAPPDATA": "C:/u/l", "APPDATA": "C:/u/r"}, "win32")
    assert (windows.data, windows.config) == ("C:/u/l/limpet", "C:/u/r/limpet/config.toml")
    assert settings.paths({"HOME": "/h", "LIMPET_HOME": "/data"}, "linux").data == "/data"


def test_a_git_directory_without_its_parts_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert common_directory(str(tmp_path)) is None
