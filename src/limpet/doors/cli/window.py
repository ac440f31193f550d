"""`limpet window …` and `limpet task …`: what fills a session's window, what is folded, and bringing it back."""

from __future__ import annotations

from typing import Any

import click

from limpet.doors.cli.build import NUMBER, Group, command, group, pass_state
from limpet.doors.cli.context import State, line_from
from limpet.doors.cli.render import Screen

Json = dict[str, Any]


def add_to(root: Group) -> None:
    noun = group(root, "window", "What fills a session's window, what is folded, and what is pinned.")
    _add_looking(noun)
    _add_restoring(noun)
    _add_pins(noun)
    tasks = group(root, "task", "Stretches of work that become one line when they end.")
    _add_tasks(tasks)


def _add_looking(noun: Group) -> None:
    @command(noun, "show", "limpet window show\nlimpet window", session=True)
    @pass_state
    def show(state: State) -> None:
        reply = state.call("show_window", {}, state.pad())
        state.answer(reply, lambda screen: _gauge(screen, reply))

    @command(noun, "folds", "limpet window folds --session parser", session=True)
    @pass_state
    def folds(state: State) -> None:
        reply = state.call("list_folds", {}, state.pad())
        columns = ("id", "how", "messages", "tokens", "found again", "at")
        state.answer(reply, lambda screen: screen.table(columns, map(_fold_row, reply["folds"])))
        if not state.json:
            state.notice(f"the session has {reply['messages']:,} messages; `limpet window restore` brings some back.")

    # `limpet window` alone is what people type to see how full it is.
    noun.invoke_without_command = True
    noun.no_args_is_help = False

    @click.pass_context
    def alone(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            ctx.invoke(show)

    noun.callback = alone


def _gauge(screen: Screen, reply: Json) -> None:
    from limpet.window.plan import gauge

    screen.block(gauge.bar(gauge.Gauge(reply["limit"], reply["used"], reply["sections"])))
    for line in reply["left_out"]:
        screen.line(line)


def _fold_row(fold: Json) -> tuple[object, ...]:
    sizes = f"{fold['before']:,} → {fold['after']:,}" if fold["before"] is not None else ""
    score = f"{fold['score']:.0%}" if fold["score"] is not None else ""
    return fold["id"], fold["how"], f"{fold['first']}-{fold['last']}", sizes, score, fold["at"]


def _add_restoring(noun: Group) -> None:
    @command(noun, "restore", "limpet window restore 120 130", session=True)
    @click.argument("first", type=NUMBER)
    @click.argument("last", type=NUMBER, required=False)
    @pass_state
    def restore(state: State, first: int, last: int | None) -> None:
        reply = state.call("uncompact", {"first": first, "last": last}, state.pad())
        words = f"messages {reply['first']} to {reply['last']} are in the window again"
        state.answer(reply, lambda screen: screen.line(words))


def _add_pins(noun: Group) -> None:
    @command(noun, "pin", "limpet window pin 'Never touch the production database.'", session=True)
    @click.argument("text", required=False)
    @pass_state
    def pin(state: State, text: str | None) -> None:
        reply = state.call("pin_text", {"content": line_from(text, state)}, state.pad())
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} pinned"))

    @command(noun, "unpin", "limpet window unpin pin_1772539200000", session=True)
    @click.argument("id")
    @pass_state
    def unpin(state: State, id: str) -> None:
        reply = state.call("unpin_text", {"id": id}, state.pad())
        state.answer(reply, lambda screen: screen.line(f"{reply['id']} unpinned"))

    @command(noun, "pins", "limpet window pins", session=True)
    @pass_state
    def pins(state: State) -> None:
        reply = state.call("list_pins", {}, state.pad())
        rows = [(one["id"], one["content"]) for one in reply["pins"]]
        state.answer(reply, lambda screen: screen.table(("id", "text"), rows))


def _add_tasks(noun: Group) -> None:
    @command(noun, "begin", "limpet task begin 'Find out why casts fail'", session=True)
    @click.argument("description")
    @pass_state
    def begin(state: State, description: str) -> None:
        reply = state.call("begin_task", {"description": description}, state.writing())
        state.answer(reply, lambda screen: screen.line(f"{reply['task_id']} begun, depth {reply['depth']}"))

    for name, wanted, example in (
        ("end", "summary", "limpet task end 'LL(1) cannot tell casts from calls; using two tokens'"),
        ("cancel", "reason", "limpet task cancel 'the grammar is generated, not written'"),
    ):
        _add_closing(noun, name, wanted, example)

    @command(noun, "list", "limpet task list", session=True)
    @click.option("--limit", type=NUMBER, metavar="N", help="At most so many.")
    @pass_state
    def list_(state: State, limit: int | None) -> None:
        reply = state.call("list_tasks", {"limit": limit}, state.pad())
        columns = ("id", "state", "description", "outcome")
        rows = [(one["task_id"], one["state"], one["description"], one["outcome"]) for one in reply["tasks"]]
        state.answer(reply, lambda screen: screen.table(columns, rows))


def _add_closing(noun: Group, name: str, wanted: str, example: str) -> None:
    def close(state: State, /, **given: str) -> None:
        reply = state.call(f"{name}_task", given, state.writing())
        state.answer(reply, lambda screen: screen.line(f"{reply['messages_collapsed']:,} messages folded"))

    command(noun, name, example, session=True)(click.argument(wanted)(pass_state(close)))
