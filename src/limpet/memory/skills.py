"""Skills: lasting know-how in SKILL.md folders. Their summary is in every window, the body is read on demand.

An agent makes one by promoting a section of its notepad: what was working text of a session becomes a procedure that
later sessions find.
"""

from __future__ import annotations

from typing import NamedTuple

from limpet import errors, limits
from limpet.catalogue.check import bounded
from limpet.catalogue.operation import Caller, Context, Json
from limpet.memory import skill_files
from limpet.memory.skill_files import Found, Skill
from limpet.model import PERSON, Digest, trusted
from limpet.outputs import keep as output_keep
from limpet.session import notepad
from limpet.text import skill_md, tokens

HEADING = "## Skills\nRead one in full with read_skill(name) before doing what it is for."
NAMED_TOKENS = 100  # for the names of what did not fit
NAMES_SHOWN = 20  # in an error


class Body(NamedTuple):
    skill: Skill
    content: str  # or a reference to it, when it is long
    tokens: int


class Promoted(NamedTuple):
    name: str
    folder: str
    tokens: int


def summary(ctx: Context, budget: int | None = None) -> Digest:
    """The prompt section about skills, empty when there are none. Its bytes change only when a skill does."""
    most = limits.SKILLS_BUDGET_TOKENS if budget is None else budget
    skills = skill_files.scan(ctx.skills).skills
    shown: list[str] = []
    left_out: list[str] = []
    used = tokens.count(HEADING)
    for skill in skills:
        line = f"- {skill.name}: {skill.description}"
        cost = tokens.count(line) + 1
        if used + cost > most:
            left_out.append(skill.name)
        else:
            shown.append(line)
            used += cost
    text = _assembled(shown, left_out)
    while shown and tokens.count(text) > most:  # the line that names the rest needs room too
        left_out.insert(0, shown.pop()[2:].partition(": ")[0])
        text = _assembled(shown, left_out)
    return Digest(text, tokens.count(text), tuple(left_out))


def _assembled(shown: list[str], left_out: list[str]) -> str:
    if not shown and not left_out:
        return ""
    lines = [HEADING, *shown]
    if left_out:
        names = list(left_out)
        while len(names) > 1 and tokens.count(", ".join(names)) > NAMED_TOKENS:
            names.pop()
        dots = " …" if len(names) < len(left_out) else ""
        lines.append(f"Not shown ({len(left_out)}): {', '.join(names)}{dots}. list_skills says what they are for.")
    return "\n".join(lines)


def list_skills(ctx: Context) -> Found:
    return skill_files.scan(ctx.skills)


def read_skill(ctx: Context, name: str) -> Body:
    found = skill_files.scan(ctx.skills).skills
    skill = next((skill for skill in found if skill.name == name), None)
    if skill is None:
        names = ", ".join(other.name for other in found[:NAMES_SHOWN])
        raise errors.no_entry("skill", name, f"Those that exist: {names or 'none'}.")
    size = tokens.count(skill.body)
    if size <= limits.SKILL_BODY_TOKENS:
        return Body(skill, skill.body, size)
    return Body(skill, output_keep.keep_output(ctx, "read_skill", skill.body, f"read_skill {name}").text, size)


def promote_skill(ctx: Context, name: str, description: str, section: str, replace: bool = False) -> Promoted:
    """Make a section of the session's notepad a skill. The notepad stays as it is."""
    if len(name) > limits.SKILL_NAME_CHARS or skill_md.NAME.fullmatch(name) is None:
        rule = f"it is up to {limits.SKILL_NAME_CHARS} small letters, digits and single hyphens between them"
        raise errors.bad_name("skill", name, rule)
    advice = "Say in a sentence what it is for and when to use it."
    told = bounded("description", " ".join(description.split()), limits.SKILL_DESCRIPTION_CHARS, advice, blank=advice)
    if not ctx.skills:
        raise errors.no_skills_folder()
    pad = notepad.read_notepad(ctx)
    body = _section(pad.content, section)
    if not trusted(pad.origin) and ctx.who != PERSON:
        rule = f"the notepad holds text from {pad.origin}, and a person has to judge that before agents follow it"
        raise errors.bad_name("section", section, rule)
    folder = ctx.skills[0]
    skill_files.save(folder, name, skill_md.render(name, told, body), replace=replace)
    return Promoted(name, f"{folder.shown}/{name}", tokens.count(body))


def _section(text: str, wanted: str) -> str:
    title = wanted.strip().lstrip("#").strip()
    there = skill_md.sections(text)
    found = [section for section in there if section.title == title]
    if not found:
        titles = ", ".join(errors.quoted(section.title) for section in there[:NAMES_SHOWN])
        raise errors.no_entry("section of the notepad", title, f"Its sections: {titles or 'none'}.")
    if len(found) > 1:
        raise errors.bad_name("section", title, f"the notepad has {len(found)} sections of that name; rename one")
    return found[0].text


# --- answers ----------------------------------------------------------------------------------------------------------


def skills_json(value: Found) -> Json:
    return {
        "skills": [{"name": s.name, "description": s.description, "folder": s.folder} for s in value.skills],
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


def promoted_json(value: Promoted) -> Json:
    return {"ok": True, "name": value.name, "folder": value.folder, "tokens": value.tokens}


class SessionSkills:
    """`session.skills`."""

    def __init__(self, session: Caller) -> None:
        self._session = session

    def list(self) -> Found:
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
