"""`limpet savings`: what kept outputs did not cost the window."""

from __future__ import annotations

from limpet.doors.cli.build import Group, command, pass_state
from limpet.doors.cli.context import State

COLUMNS = ("calls", "kept", "repeats", "reads", "observed", "returned", "read_back", "saved")


def add_to(root: Group) -> None:
    @command(
        root,
        "savings",
        "limpet savings\nlimpet savings --session port-the-parser --json",
        "Less than zero means that reading back cost more than keeping it out.",
        session=True,
    )
    @pass_state
    def savings(state: State) -> None:
        reply = state.call("savings", {"session": state.session})
        rows = [(row["session"], row["tool"], *(f"{row[name]:,}" for name in COLUMNS)) for row in reply["tools"]]
        rows.append(("in all", "", *(f"{reply['total'][name]:,}" for name in COLUMNS)))
        state.answer(reply, lambda screen: screen.table(("session", "tool", *COLUMNS), rows))
        if not state.json:
            state.notice(f"tokens by {reply['tokenizer']}; of long texts a sample is counted.")
