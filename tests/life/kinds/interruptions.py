"""Processes are killed, run side by side, or live through a change of the clock."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from life.kinds.steps import acknowledged, big, kind, of, session_of, text, word, writes_of
from life.kit import COMMAND
from life.world import (
    CALLS,
    Broken,
    Call,
    Project,
    Server,
    World,
    killed,
    program,
    same,
    values_of,
)

# --- interruptions ----------------------------------------------------------------------------------------------------


def unsure(project: Project, folder: Path, call: Call) -> None:
    operation, arguments, session = call
    truth = project.truth
    match operation:
        case "add_note":
            truth.unsure_notes[arguments["content"]] = ()
        case "write_memory":
            truth.unsure_memory.setdefault(arguments["key"], []).append(arguments["content"])
        case "write_notepad":
            truth.notepads.setdefault(session, "")
            truth.unsure_notepads.setdefault(session, []).append(arguments["content"])
        case _:
            truth.journals.setdefault(str(folder), [])
            truth.unsure_lines.setdefault(str(folder), []).append(f"- [ ] {arguments['text']}")


@kind(4)
def server_killed(world: World, chance: random.Random) -> None:
    """An agent's server is killed while calls are on their way: what was answered is there."""
    project = of(world, chance)
    place = chance.choice(project.places)
    session = session_of(chance)
    calls = [(operation, given, session) for operation, given, _ in writes_of(chance, project, chance.randint(2, 8))]
    server = Server(world.machine, place, session)
    for operation, given, _ in calls:
        server.ask("tools/call", {"name": operation, "arguments": given})
    done = chance.randrange(len(calls) + 1)
    for call in calls[:done]:
        acknowledged(project, place, call, values_of(server.read()))
    time.sleep(chance.choice((0.0, 0.0, chance.uniform(0.0, 0.05))))
    server.process.send_signal(signal.SIGKILL)
    server.process.communicate()
    for call in calls[done:]:
        unsure(project, place, call)
    world.look(project)


@kind(3)
def program_killed(world: World, chance: random.Random) -> None:
    """A program of one's own is killed, or its computer runs out of something: what it was told is there."""
    project = of(world, chance)
    place = chance.choice(project.places)
    calls = writes_of(chance, project, 12)
    process = world.machine.popen(sys.executable, CALLS, where=place)
    assert process.stdin is not None
    process.stdin.write(program(place, calls))
    process.stdin.close()
    process.stdin = None
    time.sleep(chance.uniform(0.05, 0.6))
    said = killed(process).splitlines()
    for call, line in zip(calls, said, strict=False):
        acknowledged(project, place, call, json.loads(line)["values"])
    for call in calls[len(said) :]:
        unsure(project, place, call)
    world.look(project)


@kind(2)
def command_killed(world: World, chance: random.Random) -> None:
    project, content = of(world, chance), text(chance)
    words = (*COMMAND, "note", "add", "--json", "--", content)
    process = world.machine.popen(*words, where=chance.choice(project.places))
    time.sleep(chance.uniform(0.02, 0.25))
    said = killed(process)
    if said:
        project.truth.notes[json.loads(said)["note_id"]] = (content, (), False)
    else:
        project.truth.unsure_notes[content] = ()
    world.look(project)


@kind(2)
def hook_killed(world: World, chance: random.Random) -> None:
    """A coding agent is closed while a hook keeps a result."""
    project, content = of(world, chance), big(chance, 400)
    response = {"stdout": content, "stderr": "", "interrupted": False, "isImage": False}
    given = {"session_id": "monday", "cwd": str(project.folder), "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    words = (*COMMAND, "hook", "--client", "claude-code", "after-tool")
    process = world.machine.popen(*words, where=project.folder)
    assert process.stdin is not None
    process.stdin.write(json.dumps(given | {"tool_input": {"command": "x"}, "tool_response": response}))
    process.stdin.close()
    process.stdin = None
    time.sleep(chance.uniform(0.02, 0.3))
    said = killed(process)
    before = set(project.truth.outputs)
    listed = world.library(project.folder, [("list_outputs", {"limit": 1000}, "")])[0]["entries"]
    new = [entry["id"] for entry in listed if entry["id"] not in before]
    if said and not new:
        raise Broken("a hook answered with a reference to an output that is not kept")
    for id in new:
        project.truth.outputs[id] = content
        world.read_whole(project, id, content)


@kind(2)
def http_server_killed(world: World, chance: random.Random) -> None:
    project = of(world, chance)
    calls = [call for call in writes_of(chance, project, 8) if call[0] != "update_journal"]
    with world.served(project.folder) as http:
        stop = chance.randrange(len(calls) + 1)
        for call in calls[:stop]:
            named = call[1] | {"session_id": call[2]}
            answer = http.post(f"/api/v1/operations/{call[0]}", json=named)
            if answer.status_code != 200:
                raise Broken(f"{call[0]} over HTTP: {answer.status_code} {answer.text[:300]}")
            acknowledged(project, project.folder, call, answer.json())
        os.kill(int(http.headers["X-Process"]), signal.SIGKILL)
    world.look(project)


@kind(3)
def many_at_once(world: World, chance: random.Random) -> None:
    """Several agents of one project write at the same time; nobody waits long and nothing is lost."""
    project = of(world, chance)
    running = []
    for number in range(chance.randint(2, 4)):
        place, session = chance.choice(project.places), f"lane{number}"
        calls: list[Call] = []
        for _ in range(6):
            calls.append(("add_note", {"content": text(chance)}, session))
            calls.append(("update_notepad", {"operation": "append", "content": f"- {word(chance)}\n"}, "shared"))
        process = world.machine.popen(sys.executable, CALLS, where=place)
        assert process.stdin is not None
        process.stdin.write(program(place, calls))
        process.stdin.close()
        process.stdin = None
        running.append((calls, process))
    added = []
    for calls, process in running:
        _, out, err = world.machine.finish(process)
        answers = [json.loads(line) for line in out.splitlines()]
        if len(answers) != len(calls) or any("refused" in answer for answer in answers):
            raise Broken(f"one of several writers failed: {out[-300:]} {err[-300:]}")
        for call, answer in zip(calls, answers, strict=True):
            if call[0] == "add_note":
                acknowledged(project, project.folder, call, answer["values"])
            else:
                added.append(call[1]["content"])
    before = project.truth.notepads.get("shared", "")
    after = world.library(project.folder, [("read_notepad", {}, "shared")])[0]["content"]
    if not after.startswith(before) or sorted(after[len(before) :].splitlines(True)) != sorted(added):
        raise Broken("appends of several processes to one notepad were lost or doubled")
    project.truth.notepads["shared"] = after


@kind(2)
def clock_changed(world: World, chance: random.Random) -> None:
    """The clock of the machine is wrong for a while. Lists stay in the order of writing, and no id is given twice."""
    project, ids = of(world, chance), []
    for ahead in chance.sample((0.0, 3_600.0, -3_600.0, 315_360_000.0, -31_536_000.0), 3):
        content = text(chance)
        (values,) = world.library(project.folder, [("add_note", {"content": content}, "monday")], ahead)
        if values["note_id"] in project.truth.notes:
            raise Broken(f"the id {values['note_id']} is given twice")
        project.truth.notes[values["note_id"]] = (content, (), False)
        ids.append(values["note_id"])
    listed = world.library(project.folder, [("list_notes", {"limit": 3}, "")])[0]["notes"]
    same("the newest notes, in their order", [note["id"] for note in listed], ids[::-1])
