"""Skills: lasting know-how in SKILL.md folders. Their summary is in every window, the body is read on demand.

An agent makes one by promoting a section of its notepad: the working text of a session becomes a procedure that later
sessions find.

Skills are folders in directories that people name. Because a project may come from anywhere, links are not followed,
regular files of a bounded size are read, and a bad skill is reported beside the good ones. Writing is atomic: a new
folder appears complete by one rename, which also decides between two writers of the same skill.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress

from limpet import errors, limits
from limpet.catalogue.operation import Caller, Context, Json, bounded
from limpet.model import PERSON, Digest, Folder, trusted
from limpet.outputs import keep as output_keep
from limpet.record import NamedTuple
from limpet.session import notepad
from limpet.text import brief, safe, tokens

HEADING = "## Skills\nRead one in full with read_skill(name) before doing what it is for."
NAMED_TOKENS = 100  # for the names of what did not fit
NAMES_SHOWN = 20  # in an error
FILE = "SKILL.md"
PREVIOUS = "SKILL.previous.md"  # the previous text of a replaced skill
FILES_SHOWN = 50
# Opens without following links and without blocking, so that neither a link nor a pipe can be planted.
CAREFUL = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class Skill(NamedTuple):
    name: str
    description: str
    body: str
    folder: str  # relative to the project's root
    files: tuple[str, ...]  # what else is in its folder


class SkillProblem(NamedTuple):
    folder: str
    why: str


class SkillList(NamedTuple):
    skills: tuple[Skill, ...]  # by name
    problems: tuple[SkillProblem, ...]


class Body(NamedTuple):
    skill: Skill
    content: str  # or a reference to it, when it is long
    tokens: int


class Promoted(NamedTuple):
    name: str
    folder: str
    tokens: int


def summary(ctx: Context, budget: int | None = None) -> Digest:
    """The prompt section about skills, empty when there are none. Its bytes stay the same as long as the skills do."""
    most = limits.SKILLS_BUDGET_TOKENS if budget is None else budget
    skills = scan(folders(ctx)).skills
    lines: list[str] = []
    left_out: list[str] = []
    used = tokens.count(HEADING)
    for skill in skills:
        line = f"- {skill.name}: {skill.description}"
        cost = tokens.count(line) + 1
        if used + cost > most:
            left_out.append(skill.name)
        else:
            lines.append(line)
            used += cost
    text = _assembled(lines, left_out)
    while lines and tokens.count(text) > most:  # the line that names the rest needs room too
        left_out.insert(0, lines.pop()[2:].partition(": ")[0])
        text = _assembled(lines, left_out)
    return Digest(text, tokens.count(text), tuple(left_out))


def _assembled(summaries: list[str], left_out: list[str]) -> str:
    if not summaries and not left_out:
        return ""
    lines = [HEADING, *summaries]
    if left_out:
        names = list(left_out)
        while len(names) > 1 and tokens.count(", ".join(names)) > NAMED_TOKENS:
            names.pop()
        dots = " …" if len(names) < len(left_out) else ""
        lines.append(f"Not shown ({len(left_out)}): {', '.join(names)}{dots}. list_skills says what they are for.")
    return "\n".join(lines)


def folders(ctx: Context) -> tuple[Folder, ...]:
    """The directories to look in. The project's own one may not have been made yet."""
    path = ctx.data.path if ctx.data else None
    own = [Folder(os.path.join(path, folder.label), folder.label) for folder in ctx.skills if path and not folder.path]
    return (*own, *(folder for folder in ctx.skills if folder.path))


def list_skills(ctx: Context) -> SkillList:
    return scan(folders(ctx))


def read_skill(ctx: Context, name: str) -> Body:
    skills = scan(folders(ctx)).skills
    skill = next((skill for skill in skills if skill.name == name), None)
    if skill is None:
        names = ", ".join(existing.name for existing in skills[:NAMES_SHOWN])
        raise errors.no_entry("skill", name, f"Those that exist: {names}." if names else "There are none yet.")
    size = tokens.count(skill.body)
    if size <= limits.SKILL_BODY_TOKENS:
        return Body(skill, skill.body, size)
    return Body(skill, output_keep.keep_output(ctx, "read_skill", skill.body, f"read_skill {name}").text, size)


def promote_skill(ctx: Context, name: str, description: str, section: str, replace: bool = False) -> Promoted:
    """Make a section of the session's notepad a skill. The notepad stays as it is."""
    if len(name) > limits.SKILL_NAME_CHARS or SKILL_NAME.fullmatch(name) is None:
        rule = f"it is up to {limits.SKILL_NAME_CHARS} small letters, digits and single hyphens between them"
        raise errors.bad_name("skill", name, rule)
    advice = "Say in a sentence what it is for and when to use it."
    purpose = bounded(
        "description", " ".join(description.split()), limits.SKILL_DESCRIPTION_CHARS, advice, blank=advice
    )
    if not ctx.skills:
        raise errors.no_skills_folder()
    pad = notepad.read_notepad(ctx)
    body = ctx.masked(_section(pad.content, section))  # the person may have kept a secret in the notepad
    if not trusted(pad.origin) and ctx.who != PERSON:
        rule = f"the notepad holds text from {pad.origin}, and a person has to judge that before agents follow it"
        raise errors.bad_name("section", section, rule)
    folder = ctx.skills[0]
    if not folder.path and ctx.data is not None:
        folder = folder._replace(path=os.path.join(ctx.data.make(), folder.label))
    save(folder, name, skill_text(name, purpose, body), replace=replace)
    return Promoted(name, f"{folder.label}/{name}", tokens.count(body))


def _section(text: str, heading: str) -> str:
    title = heading.strip().lstrip("#").strip()
    sections = notepad_sections(text)
    matches = [section for section in sections if section.title == title]
    if not matches:
        titles = ", ".join(errors.quoted(section.title) for section in sections[:NAMES_SHOWN])
        raise errors.no_entry("section of the notepad", title, f"Its sections: {titles or 'none'}.")
    if len(matches) > 1:
        rule = f"the notepad has {len(matches)} sections of that name; rename one"
        raise errors.bad_name("section", title, rule)
    return matches[0].text


# --- skills on disk ---------------------------------------------------------------------------------------------------


def scan(folders: Iterable[Folder]) -> SkillList:
    """All skills. Of two with one name the first directory's counts, and the other is reported."""
    skills: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    for folder in folders:
        if folder.counts is not None and not folder.counts():
            problems.append(SkillProblem(folder.label, "it is not as the person trusted it, so nothing of it counts"))
            continue
        names = _names(folder.path)
        if len(names) > limits.SKILLS_MOST:
            problems.append(
                SkillProblem(folder.label, f"only the first {limits.SKILLS_MOST} of {len(names)} were read")
            )
        for name in names[: limits.SKILLS_MOST]:
            label = f"{folder.label}/{name}"
            try:
                skill = _read(os.path.join(folder.path, name), label)
            except (BadSkill, OSError) as problem:
                why = os.strerror(problem.errno or 0) if isinstance(problem, OSError) else str(problem)
                problems.append(SkillProblem(label, why))
                continue
            if skill.name in skills:
                problems.append(SkillProblem(label, f"{skills[skill.name].folder} has the same name and comes first"))
            else:
                skills[skill.name] = skill
    return SkillList(tuple(skills[name] for name in sorted(skills)), tuple(problems))


def _names(path: str) -> list[str]:
    """The folders in a directory that may be skills; there need not be one."""
    with suppress(OSError), os.scandir(path) as items:
        return sorted(item.name for item in items if not item.name.startswith(".") and item.is_dir())
    return []


def _read(path: str, label: str) -> Skill:
    if os.path.islink(path):
        raise BadSkill("it is a link, and links are not followed; copy it or name its directory instead")
    parts = parse_skill(_text(os.path.join(path, FILE)))
    if len(parts.name) > limits.SKILL_NAME_CHARS or not parts.name.isprintable():
        raise BadSkill(f"its name is longer than {limits.SKILL_NAME_CHARS} characters or not printable")
    if len(parts.description) > limits.SKILL_DESCRIPTION_CHARS:
        raise BadSkill(f"its description has more than {limits.SKILL_DESCRIPTION_CHARS:,} characters")
    files = sorted(name for name in os.listdir(path) if name not in (FILE, PREVIOUS) and not name.startswith("."))
    return Skill(parts.name, parts.description, parts.body, label, tuple(files[:FILES_SHOWN]))


def _text(path: str) -> str:
    try:
        handle = os.open(path, CAREFUL)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            raise BadSkill(f"it has no {FILE}") from None
        if problem.errno == errno.ELOOP:
            raise BadSkill(f"its {FILE} is a link, and links are not followed") from None
        raise
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadSkill(f"its {FILE} is not an ordinary file")
        data = file.read(limits.SKILL_MAX_BYTES + 1)
    if len(data) > limits.SKILL_MAX_BYTES:
        raise BadSkill(f"its {FILE} has more than {limits.SKILL_MAX_BYTES:,} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise BadSkill(f"its {FILE} is not UTF-8") from None
    if why := safe.problem(text):
        raise BadSkill(f"its {FILE} holds {why}")
    return text


def save(folder: Folder, name: str, text: str, *, replace: bool) -> None:
    """Write a skill's folder. An existing one is replaced on request, and its previous text stays beside it."""
    target = os.path.join(folder.path, name)
    try:
        os.makedirs(folder.path, exist_ok=True)
        if not os.path.lexists(target):
            _create(folder.path, name, text)
        elif not replace:
            raise errors.skill_exists(name)
        elif os.path.islink(target):
            raise errors.skill_not_saved(name, "its folder is a link, and links are not followed")
        else:
            _exchange(target, text)
    except OSError as problem:
        raise errors.skill_not_saved(name, problem.strerror or str(problem)) from None


def _create(directory: str, name: str, text: str) -> None:
    temporary = os.path.join(directory, f".new-{os.urandom(6).hex()}")
    os.mkdir(temporary)
    with ExitStack() as undo:
        undo.callback(_discard, os.rmdir, temporary)
        undo.callback(_discard, os.unlink, os.path.join(temporary, FILE))
        _write(os.path.join(temporary, FILE), text.encode())
        _sync(temporary)
        _move(temporary, os.path.join(directory, name), name)
        undo.pop_all()
    _sync(directory)


def _discard(remove: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        remove(path)


def _move(temporary: str, target: str, name: str) -> None:
    try:
        os.rename(temporary, target)
    except OSError as problem:
        if problem.errno in (errno.EEXIST, errno.ENOTEMPTY):  # another writer was faster
            raise errors.skill_exists(name) from None
        raise


def _exchange(target: str, text: str) -> None:
    path = os.path.join(target, FILE)
    with suppress(FileNotFoundError), os.fdopen(os.open(path, CAREFUL), "rb") as file:
        _put(os.path.join(target, PREVIOUS), file.read())
    _put(path, text.encode())


def _put(path: str, data: bytes) -> None:
    """Replace a file atomically: after a crash it has the old content or the new."""
    temporary = f"{os.path.dirname(path)}/.new-{os.urandom(6).hex()}"
    with ExitStack() as undo:
        undo.callback(_discard, os.unlink, temporary)
        _write(temporary, data)
        os.replace(temporary, path)
        undo.pop_all()
    _sync(os.path.dirname(path))


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- answers ----------------------------------------------------------------------------------------------------------


def skills_json(value: SkillList) -> Json:
    return {
        "skills": [
            {"name": skill.name, "description": skill.description, "folder": skill.folder} for skill in value.skills
        ],
        "problems": [{"folder": problem.folder, "why": problem.why} for problem in value.problems],
    }


def skill_json(value: Body) -> Json:
    return {
        "name": value.skill.name,
        "description": value.skill.description,
        "content": value.content,
        "tokens": value.tokens,
        "folder": value.skill.folder,
        "files": list(value.skill.files),
    }


def skills_text(_ctx: Context, value: SkillList) -> str:
    skills = [f"{skill.name}: {skill.description}" for skill in value.skills]
    problems = [f"not usable: {safe.as_name(problem.folder)} ({problem.why})" for problem in value.problems]
    return brief.lines((*skills, *problems), f"{brief.counted(len(skills), 'skill')}.")


def body_text(_ctx: Context, value: Body) -> str:
    files = f"Files in {value.skill.folder}: {', '.join(value.skill.files)}" if value.skill.files else ""
    return "\n\n".join(part for part in (value.content.strip(), files) if part)


def promoted_json(value: Promoted) -> Json:
    return {"ok": True, "name": value.name, "folder": value.folder, "tokens": value.tokens}


class SessionSkills:
    """`session.skills`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def list(self) -> SkillList:
        """The skills, and what is wrong with those that cannot be used."""
        return self._session.do(list_skills)

    def read(self, name: str) -> Body:
        return self._session.do(read_skill, name=name)

    def promote(self, name: str, description: str, section: str, *, replace: bool = False) -> Promoted:
        """Make a section of this session's notepad a skill."""
        return self._session.do(promote_skill, name=name, description=description, section=section, replace=replace)

    def summary(self, budget: int | None = None) -> Digest:
        """The prompt section about skills."""
        return summary(self._session.ctx(), budget)


# --- SKILL.md ---------------------------------------------------------------------------------------------------------

FENCE = "---"
SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")  # of a new skill; it is also the name of its folder
_YAML_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"([>|])[+-]?\d?")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_CODE = re.compile(r" {0,3}(`{3,}|~{3,})")


class SkillParts(NamedTuple):
    name: str
    description: str
    body: str


class SkillSection(NamedTuple):
    title: str
    text: str  # with its heading, up to the next one of its level or above


class BadSkill(ValueError):
    """A SKILL.md that cannot be used. The message says why."""


def parse_skill(text: str) -> SkillParts:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise BadSkill(f"it does not begin with a line {FENCE}, then name and description")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise BadSkill(f"its front matter is not closed by a line {FENCE}")
    fields = _fields(lines[1:end])
    for required in ("name", "description"):
        if not fields.get(required):
            raise BadSkill(f"its front matter has no {required}")
    return SkillParts(fields["name"], fields["description"], "\n".join(lines[end + 1 :]).strip("\r\n"))


def _fields(lines: list[str]) -> dict[str, str]:
    """The texts of the front matter by name, each in one line."""
    texts: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if field := _YAML_FIELD.fullmatch(line.rstrip()):
            name = field[1]
            value = field[2] or ""
            texts[name] = [] if _BLOCK.fullmatch(value) else [value]
        elif name and (line[:1] in " \t" or not line):
            texts[name].append(line.strip())
    return {name: " ".join(_scalar(" ".join(parts).strip()).split()) for name, parts in texts.items()}


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value.partition(" #")[0]  # a comment


def skill_text(name: str, description: str, body: str) -> str:
    """The file. The description is a JSON string, which is also valid YAML."""
    return f"{FENCE}\nname: {name}\ndescription: {json.dumps(description, ensure_ascii=False)}\n{FENCE}\n\n{body}\n"


def notepad_sections(text: str) -> list[SkillSection]:
    """The sections of a Markdown text. Headings inside code blocks do not count."""
    lines = text.split("\n")
    heads: list[tuple[int, int, str]] = []  # line, level, title
    fence = ""
    for at, line in enumerate(lines):
        code = _CODE.match(line)
        if code and (not fence or (code[1].startswith(fence) and not line.strip().strip(fence[0]))):
            fence = "" if fence else code[1]
        elif not fence and (head := _HEADING.fullmatch(line.rstrip("\r"))):
            heads.append((at, len(head[1]), head[2]))
    ends = [
        next((at for at, above, _ in heads[number + 1 :] if above <= level), len(lines))
        for number, (_, level, _) in enumerate(heads)
    ]
    return [
        SkillSection(title, "\n".join(lines[at:end]).strip("\n"))
        for (at, _, title), end in zip(heads, ends, strict=True)
    ]
