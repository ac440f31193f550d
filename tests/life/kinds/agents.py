"""Agents and people write, correct and undo; windows are wiped and taken up again."""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from life.kinds.steps import SENTENCES, big, kind, note_added_to, of, session_of, tags_of, text, word
from life.kit import COMMAND
from life.world import (
    CALLS,
    REFERENCE,
    Broken,
    Call,
    Json,
    Refused,
    Server,
    World,
    killed,
    program,
    same,
)

# --- one writes, others change it -------------------------------------------------------------------------------------


@kind(6)
def note_added(world: World, chance: random.Random) -> None:
    project, content, tags = of(world, chance), text(chance), tags_of(chance)
    given: Json = {"content": content, **({"tags": tags} if tags else {})}
    answer = world.call(chance, project, "add_note", given, session_of(chance))
    project.truth.notes[answer["note_id"]] = (content, tuple(tags), False)


@kind(4)
def note_changed(world: World, chance: random.Random) -> None:
    project = of(world, chance)
    if not project.truth.notes:
        return
    id = chance.choice(sorted(project.truth.notes))
    content, tags, done = project.truth.notes[id]
    match chance.randrange(4):
        case 0:
            content = text(chance)
            world.call(chance, project, "update_note", {"id": id, "content": content})
        case 1:
            done = not done
            world.call(chance, project, "update_note", {"id": id, "done": done})
        case 2:
            tags = tuple(tags_of(chance))
            world.call(chance, project, "update_note", {"id": id, "tags": list(tags)})
        case _:
            world.call(chance, project, "delete_note", {"id": id})
            del project.truth.notes[id]
            return
    project.truth.notes[id] = (content, tags, done)


@kind(4)
def memory_written(world: World, chance: random.Random) -> None:
    project, key = of(world, chance), chance.choice(("owner", "release/branch", "größe", "数据库", "a.b-c_d"))
    known = project.truth.memory
    if key in known and chance.random() < 0.3:
        world.call(chance, project, "delete_memory", {"key": key})
        del known[key]
        return
    content = text(chance)
    if key in known and chance.random() < 0.3:
        doors = ("stdio", "library", "http")
        world.call(chance, project, "write_memory", {"key": key, "content": content, "mode": "append"}, doors=doors)
        values = world.library(project.folder, [("read_memory", {"key": key}, "")])[0]
        if not (values["content"].startswith(known[key]) and values["content"].endswith(content)):
            raise Broken(f"appended to {key}: {values['content'][:300]!r}")
        content = values["content"]
    else:
        world.call(chance, project, "write_memory", {"key": key, "content": content})
    known[key] = content


@kind(4)
def notepad_written(world: World, chance: random.Random) -> None:
    project, session = of(world, chance), session_of(chance)
    content = "".join(f"- [ ] {text(chance)}\n" for _ in range(chance.randint(1, 4)))
    before = project.truth.notepads.get(session)
    if before is None or chance.random() < 0.4:
        world.call(chance, project, "write_notepad", {"content": content}, session)
        project.truth.notepads[session] = content
        return
    doors = ("stdio", "library", "http")
    if chance.random() < 0.5:
        where = chance.choice(("append", "prepend"))
        world.call(chance, project, "update_notepad", {"operation": where, "content": content}, session, doors=doors)
        after = world.library(project.folder, [("read_notepad", {}, session)])[0]["content"]
        whole = after.startswith(before) and after.endswith(content)
        if not (whole if where == "append" else after.startswith(content) and after.endswith(before)):
            raise Broken(f"{where} made {after[:300]!r} of {before[:200]!r} and {content[:200]!r}")
        project.truth.notepads[session] = after
    else:
        old, new = "- [ ]", "- [x] $& \\1"
        given = {"operation": "find_replace", "find": old, "replace": new, "replace_all": True}
        if old not in before:
            return
        world.call(chance, project, "update_notepad", given, session, doors=doors)
        project.truth.notepads[session] = before.replace(old, new)


@kind()
def state_set(world: World, chance: random.Random) -> None:
    project, key = of(world, chance), chance.choice(("build", "plan", "ключ"))
    value: Any = chance.choice(({"number": chance.randrange(10**6), "text": text(chance)}, [1, 2.5, None, "x"], 0, ""))
    world.call(chance, project, "agent_state", {"action": "set", "key": key, "value": value}, session_of(chance))
    project.truth.state[key] = value


@kind()
def text_pinned(world: World, chance: random.Random) -> None:
    project, session, content = of(world, chance), session_of(chance), text(chance)
    doors = ("stdio", "library", "http")
    pin = world.call(chance, project, "pin_text", {"content": content}, session, doors=doors)
    pins = project.truth.pins.setdefault(session, {})
    pins[pin["id"]] = content
    if len(pins) > 1 and chance.random() < 0.5:
        id = chance.choice(sorted(pins))
        world.call(chance, project, "unpin_text", {"id": id}, session, doors=doors)
        del pins[id]


@kind(4)
def mistake_undone(world: World, chance: random.Random) -> None:
    """Somebody changes something, others go on, and the change is taken back by its number."""
    project = of(world, chance)
    truth = project.truth
    choices: list[tuple[str, Json, str]] = []
    if truth.notes:
        id = chance.choice(sorted(truth.notes))
        choices += [("delete_note", {"id": id}, "note"), ("update_note", {"id": id, "content": text(chance)}, "note")]
    if truth.memory:
        key = chance.choice(sorted(truth.memory))
        choices += [("delete_memory", {"key": key}, "memory"), ("write_memory", {"key": key, "content": "!"}, "memory")]
    if not choices:
        return
    operation, arguments, of_kind = chance.choice(choices)
    world.call(chance, project, operation, arguments)
    key = arguments.get("id") or arguments["key"]
    (event,) = world.library(project.folder, [("history", {"kind": of_kind, "key": key, "limit": 1}, "")])[0]["events"]
    if chance.random() < 0.5:
        note_added_to(world, chance, project)
    world.machine.answer("undo", str(event["seq"]), "--json", where=project.folder)
    world.look(project)


@kind()
def last_change_undone(world: World, chance: random.Random) -> None:
    """A person takes back what they did last; what an agent did meanwhile stays."""
    project, content, kept = of(world, chance), text(chance), text(chance)
    answer = world.machine.answer("note", "add", "--json", "--", content, where=project.folder)
    by_agent = world.call(chance, project, "add_note", {"content": kept}, "monday", doors=("stdio",))
    project.truth.notes[by_agent["note_id"]] = (kept, (), False)
    world.machine.answer("undo", "--yes", "--json", where=project.folder)
    listed = world.machine.answer("note", "list", "--all", "--json", where=project.folder)["notes"]
    if answer["note_id"] in [note["id"] for note in listed]:
        raise Broken("`limpet undo` left the note that the person added last")


@kind()
def old_version_refused(world: World, chance: random.Random) -> None:
    """Two agents edit one notepad; the one who has an old version is told, and nothing is lost."""
    project, session, content = of(world, chance), session_of(chance), text(chance) + "\n"
    first = world.call(chance, project, "write_notepad", {"content": content}, session, doors=("library",))
    later = content + "- more\n"
    world.call(chance, project, "write_notepad", {"content": later}, session, doors=("stdio",))
    project.truth.notepads[session] = later
    try:
        given = {"content": "mine", "expected_version": first["version"]}
        world.call(chance, project, "write_notepad", given, session, doors=("stdio", "library", "http"))
    except Refused:
        return
    raise Broken("an old version wrote over a newer one")


@kind()
def call_repeated(world: World, chance: random.Random) -> None:
    """A client does not know whether its call arrived, and sends it again with the same key."""
    project, content = of(world, chance), text(chance)
    given = {"content": content, "idempotency_key": f"key-{world.number()}"}
    ids = {
        world.call(chance, project, "add_note", given, "monday", doors=("stdio", "library", "http"))["note_id"]
        for _ in range(chance.choice((2, 3)))
    }
    same("the notes of one repeated call", len(ids), 1)
    project.truth.notes[ids.pop()] = (content, (), False)


@kind()
def correction_made(world: World, chance: random.Random) -> None:
    """A note replaces another: it is the one that is found, and the older one stays readable."""
    project = of(world, chance)
    current = sorted(project.truth.notes.keys() - project.truth.replaced)
    if not current:
        return
    old, content = chance.choice(current), text(chance)
    given = {"content": content, "replaces": old}
    answer = world.call(chance, project, "add_note", given, "monday", doors=("stdio", "library", "http"))
    project.truth.notes[answer["note_id"]] = (content, (), False)
    project.truth.replaced.add(old)
    listed = world.call(chance, project, "list_notes", {"limit": 1000, "include_done": True}, doors=("stdio", "http"))
    ids = [note["id"] for note in listed["notes"]]
    if old in ids or answer["note_id"] not in ids:
        raise Broken("a replaced note is listed as if it still counted, or its correction is not")


@kind()
def foreign_language(world: World, chance: random.Random) -> None:
    """A fact in some language is found again by its own words."""
    project, language = of(world, chance), chance.choice(list(SENTENCES))
    name = word(chance)
    content = SENTENCES[language].format(name)
    answer = world.call(chance, project, "add_note", {"content": content}, session_of(chance))
    project.truth.notes[answer["note_id"]] = (content, (), False)
    found = world.call(chance, project, "recall", {"query": name}, doors=("stdio", "library", "http"))
    texts = [hit["text"].replace("«", "").replace("»", "") for hit in found["hits"]]
    if not any(name in said for said in texts):
        raise Broken(f"{name} ({language}) is not found: {texts[:3]}")


@kind()
def secret_pasted(world: World, chance: random.Random) -> None:
    """Somebody pastes a token. It is on no disk, and the rest of the text is."""
    project, name = of(world, chance), word(chance)
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    secret = "ghp_" + "".join(chance.choice(letters) for _ in range(36))
    content = f"{name}: push with {secret} until Friday"
    answer = world.call(chance, project, "add_note", {"content": content}, session_of(chance))
    listed = world.library(project.folder, [("list_notes", {"limit": 1000}, "")])[0]["notes"]
    (stored,) = [note["content"] for note in listed if note["id"] == answer["note_id"]]
    if secret in stored or name not in stored or "until Friday" not in stored:
        raise Broken(f"a secret was stored as {stored!r}")
    project.truth.notes[answer["note_id"]] = (stored, (), False)
    world.secrets.append(secret)


# --- windows that are wiped -------------------------------------------------------------------------------------------


@kind(3)
def handoff_left(world: World, chance: random.Random) -> None:
    """A session leaves a handoff. It waits until somebody has worked with it, and then it is used up."""
    project, content = of(world, chance), f"{text(chance)} {word(chance)} is next."
    place, doors = chance.choice(project.places), ("command", "stdio", "library", "http")
    writer = f"work{world.number()}"
    world.call(chance, project, "write_session_handoff", {"content": content}, writer, where=place, doors=doors)
    mark = content.rpartition(" is next.")[0].rpartition(" ")[2]
    for _ in range(chance.randrange(2)):  # opened, looked at, closed: nothing is used up
        world.hook("session-start", place, f"look{world.number()}", hook_event_name="SessionStart", source="startup")
    server = Server(world.machine, place)
    shown = mark in server.instructions
    goes_on = f"{word(chance)} goes on"
    used = server.call("add_note", {"content": goes_on})  # its answer brings the handoff to models without instructions
    project.truth.notes[used["note_id"]] = (goes_on, (), False)
    server.call("list_notes", {})
    server.end()
    if not shown:
        raise Broken(f"the next session was not given the handoff {mark}")
    after = Server(world.machine, place)
    again = mark in after.instructions
    after.end()
    if again:
        raise Broken(f"a handoff that was used is given again: {mark}")


@kind(3)
def context_compacted(world: World, chance: random.Random) -> None:
    """A coding agent's context is compacted: the notepad comes back."""
    project, session, content = of(world, chance), f"code{world.number()}", f"- [ ] {text(chance)}\n"
    place = chance.choice(project.places)
    world.hook("session-start", place, session, hook_event_name="SessionStart", source="startup")
    world.call(chance, project, "write_notepad", {"content": content}, session, where=place)
    project.truth.notepads[session] = content
    world.hook(
        "prompt", place, session, hook_event_name="UserPromptSubmit", prompt="Go on. " * chance.choice((1, 9000))
    )
    world.hook("before-compact", place, session, hook_event_name="PreCompact", trigger="auto")
    back = world.hook("session-start", place, session, hook_event_name="SessionStart", source="compact")
    name = json.dumps(max(content.split(), key=len), ensure_ascii=False)[1:-1]
    if name not in json.dumps(back, ensure_ascii=False):
        raise Broken(f"after a compaction the notepad is not back: {json.dumps(back, ensure_ascii=False)[:400]}")
    if chance.random() < 0.5:
        world.hook("stop", place, session, hook_event_name="Stop")
        world.hook("session-end", place, session, hook_event_name="SessionEnd", reason="exit")


@kind(3)
def conversation_resumed(world: World, chance: random.Random) -> None:
    """A program goes on with a conversation where an earlier process ended, some time after a kill."""
    project, session = of(world, chance), f"talk{chance.randrange(3)}"
    turns = []
    for _ in range(chance.randint(1, 5)):
        name = word(chance)
        turns.append((f"Request {name}: port it. " * 30, f"Answer {name} is done. " * chance.choice((1, 60))))
    # What one turn says must be told apart from the others: the whole text is looked for.
    calls: list[Call] = [("say", list(turn), session) for turn in turns]
    process = world.machine.popen(sys.executable, CALLS, where=project.folder)
    assert process.stdin is not None
    process.stdin.write(program(project.folder, calls))
    process.stdin.close()
    process.stdin = None
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0.2, 0.9))
        said = killed(process).splitlines()
    else:
        _, out, err = world.machine.finish(process)
        said = out.splitlines()
        if len(said) != len(calls):
            raise Broken(f"the program ended early: {err[-500:]}")
    for number, turn in enumerate(turns):
        where = project.truth.said if number < len(said) else project.truth.unsure_said
        where.setdefault(session, []).extend(turn)
    if chance.random() < 0.5:
        world.look_at_messages(project)


@kind(3)
def output_kept(world: World, chance: random.Random) -> None:
    """A tool says much; the agent gets a reference, and all of it can be read."""
    project, session = of(world, chance), session_of(chance)
    content = big(chance, chance.choice((150, 2_000, 30_000)))
    place = chance.choice(project.places)
    if chance.random() < 0.5:
        words = (*COMMAND, "output", "keep", "make", "--session", session)
        code, out, err = world.machine.finish(world.machine.popen(*words, where=place), content)
        if code:
            raise Broken(f"output keep ended with {code}: {err[-300:]}")
    else:
        response = {"stdout": content, "stderr": "", "interrupted": False, "isImage": False}
        call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": response}
        answer = world.hook("after-tool", place, session, hook_event_name="PostToolUse", **call)
        out = json.dumps(answer, ensure_ascii=False)
    reference = REFERENCE.search(out)
    if reference is None:
        raise Broken(f"{len(content):,} characters were not kept: {out[:300]}")
    project.truth.outputs[reference[1]] = content
    number = chance.randrange(content.count("\n"))
    line = content.splitlines()[number]
    read = world.call(
        chance,
        project,
        "read_output",
        {"id": reference[1], "lines": f"{number + 1}-{number + 1}"},
        doors=("stdio", "library", "http"),
    )
    if line not in read["content"]:
        raise Broken(f"line {number + 1} of {reference[1]} is not {line!r} but {read['content'][:200]!r}")


@kind(1)
def output_deleted(world: World, chance: random.Random) -> None:
    project = of(world, chance)
    if project.truth.outputs:
        id = chance.choice(sorted(project.truth.outputs))
        world.call(chance, project, "delete_output", {"id": id}, doors=("stdio", "library", "http"))
        del project.truth.outputs[id]


@kind()
def sub_agents(world: World, chance: random.Random) -> None:
    """A session gives work to others. They have its notepad if it says so, and the parent gets their result alone."""
    project, session = of(world, chance), f"lead{world.number()}"
    plan = f"- [ ] {text(chance)}\n"
    doors = ("stdio", "library", "http")
    world.call(chance, project, "write_notepad", {"content": plan}, session, doors=doors)
    project.truth.notepads[session] = plan
    copied = chance.random() < 0.5
    given = {"task": f"look at {word(chance)}", "copy_notepad": copied}
    child = world.call(chance, project, "spawn_session", given, session, doors=doors)["id"]
    project.truth.notepads[child] = plan if copied else ""
    note, result = text(chance), text(chance)
    answer = world.call(chance, project, "add_note", {"content": note}, child, doors=doors)
    project.truth.notes[answer["note_id"]] = (note, (), False)
    world.call(chance, project, "report_result", {"result": result}, child, doors=doors)
    (ended,) = world.call(chance, project, "wait_for_sessions", {"ids": [child]}, doors=doors)["results"]
    same("the result of a sub-agent", ended["result"], result)
