"""SKILL.md as text: front matter in the ways people write it, and sections of a notepad."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.skills import SKILL_NAME as NAME
from limpet.memory.skills import BadSkill, SkillSection
from limpet.memory.skills import SkillParts as Parts
from limpet.memory.skills import notepad_sections as sections
from limpet.memory.skills import parse_skill as parse
from limpet.memory.skills import skill_text as render
from limpet.text import safe


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("name: deploy\ndescription: How to deploy.", "How to deploy."),
        ("name: deploy\ndescription: 'It''s how: to deploy'", "It's how: to deploy"),
        ('name: deploy\ndescription: "How \\"to\\" deploy"', 'How "to" deploy'),
        ("name: deploy\ndescription: >-\n  How to\n  deploy.\n", "How to deploy."),
        ("name: deploy\ndescription: |\n  How to\n\n  deploy.\nlicense: MIT", "How to deploy."),
        ("name: deploy\ndescription: How to\n  deploy.", "How to deploy."),
        ("name: deploy # the name\ndescription: How # why", "How"),
        ("metadata:\n  author: me\n  name: other\nname: deploy\ndescription: D", "D"),
        ("description: D\nallowed-tools: [Read]\nname: deploy", "D"),
    ],
)
def test_front_matter_is_read_as_people_write_it(front: str, description: str) -> None:
    assert parse(f"---\n{front}\n---\n\n# Steps\n1. tag\n") == Parts("deploy", description, "# Steps\n1. tag")
    windows = f"\ufeff---\n{front}\n---\n\n# Steps\n1. tag\n".replace("\n", "\r\n")
    assert parse(windows) == Parts("deploy", description, "# Steps\n1. tag")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not begin"),
        ("# Deploy\n", "does not begin"),
        ("---\nname: a\ndescription: b\n", "not closed"),
        ("---\ndescription: b\n---\n", "no name"),
        ("---\nname: a\n---\n", "no description"),
        ("---\nname: a\ndescription:\n---\n", "no description"),
        ("---\n- name\n---\n", "no name"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, why: str) -> None:
    with pytest.raises(BadSkill, match=why):
        parse(text)


@given(st.from_regex(NAME, fullmatch=True), st.text(min_size=1), st.text())
def test_what_is_written_is_read_again(name: str, description: str, body: str) -> None:
    told = " ".join(description.split())
    if not told or safe.problem(told + body):
        return
    clean = body.replace("\r\n", "\n").strip("\r\n")
    assert parse(render(name, told, clean)) == Parts(name, told, clean)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    sections(text)
    try:
        parse(f"---\n{text}")
    except BadSkill:
        return


def test_a_section_ends_where_one_of_its_level_begins() -> None:
    text = "intro\n# One\na\n## Inner ##\nb\n```sh\n# no heading\n```\n# Two\nc\n\n"
    assert sections(text) == [
        SkillSection("One", "# One\na\n## Inner ##\nb\n```sh\n# no heading\n```"),
        SkillSection("Inner", "## Inner ##\nb\n```sh\n# no heading\n```"),
        SkillSection("Two", "# Two\nc"),
    ]
    assert sections("#hashtag\n    # code\n####### seven\n") == []
