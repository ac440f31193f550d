"""`limpet skill …`: what a project's agents know how to do, as SKILL.md folders."""

from __future__ import annotations

import click

from limpet.doors.cli.build import Group, command, group, pass_state
from limpet.doors.cli.context import State


def add_to(root: Group) -> None:
    noun = group(root, "skill", "Know-how in SKILL.md folders that every session finds.")

    @command(noun, "list", "limpet skill list")
    @pass_state
    def list_(state: State) -> None:
        reply = state.call("list_skills", {})
        rows = [(skill["name"], skill["description"], skill["folder"]) for skill in reply["skills"]]
        state.answer(reply, lambda screen: screen.table(("name", "description", "folder"), rows))
        if not state.json:
            for problem in reply["problems"]:
                state.notice(f"{problem['folder']} cannot be used: {problem['why']}.")

    @command(noun, "show", "limpet skill show deploy")
    @click.argument("name")
    @pass_state
    def show(state: State, name: str) -> None:
        reply = state.call("read_skill", {"name": name})
        state.answer(reply, lambda screen: screen.block(reply["content"]))

    @command(
        noun,
        "promote",
        "limpet skill promote deploy --section 'Deploy steps' --description 'How to deploy, when a release is due.'",
        session=True,
    )
    @click.argument("name")
    @click.option("--section", metavar="HEADING", required=True, help="The heading of the section of the notepad.")
    @click.option("--description", metavar="TEXT", required=True, help="What it is for and when to use it.")
    @click.option("--replace", is_flag=True, help="If there is one of that name.")
    @pass_state
    def promote(state: State, name: str, section: str, description: str, replace: bool) -> None:
        arguments = {"name": name, "section": section, "description": description, "replace": replace}
        reply = state.call("promote_skill", arguments, state.pad())
        state.answer(reply, lambda screen: screen.line(f"{reply['name']} is in {reply['folder']}"))
