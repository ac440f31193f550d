"""A sample project for people who look: three days of two agents in a small shop, with everything Limpet keeps.

It has a folder and a store of its own below the data folder, so nothing of it is mixed with what your agents keep. The
story is made by the same calls that agents make, at times before now: sessions with what was said, a window that was
compacted, big outputs, a journal, a fact that was corrected, one whose source has changed since, one that expired.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile

from limpet import errors, settings, wiring
from limpet.api import Clock, Limpet, Session
from limpet.home.folders import Home
from limpet.model import Scope
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.controller import Compact

PROJECT = "sample"
FOLDER = "sample"
STORE = "limpet.db"
HOUR = 3_600_000
DAY = 24 * HOUR
WINDOW_TOKENS = 6_000  # of the model in the story: small, so that it fills up
TALK_MOST = 90  # turns until it does
PRICES = '''"""Prices of the shop, in cents."""

TAX = 0.19


def total(items):
    """What a customer pays: rounded once, at the end."""
    net = sum(item.price * item.count for item in items)
    return round(net * (1 + TAX))


def shipping(net):
    return 0 if net >= 5_000 else 490
'''
LATER_SHIPPING = "    return 0 if net >= 7_500 else 590\n"  # what the last lines became on the third day
ROUNDING = """## Round once

Totals are rounded **once**, at the end. Rounding every line made 17 of 400 invoices differ by a cent.

| way | invoices that differ |
|---|--:|
| every line | 17 |
| once | 0 |

See `prices.py`, and the ticket SHOP-212."""
PLAN = """# Round the totals of the cart

- [x] find where totals are rounded
- [x] a test with the 17 invoices
- [ ] the report of the month
- [ ] tell support what changes

Ask Mira before anything touches `shipping()`.
"""
HANDOFF = """Totals are rounded once now; 400 of 400 invoices agree.

Next:
- the report of the month still rounds every line (`report.py`)
- Mira wants to see the 17 invoices before the release

Tried and failed:
- `decimal` everywhere: twice as slow, and nothing gained"""


def place() -> str:
    """The folder of the sample, whether it is there or not."""
    return os.path.join(settings.data_folder(), FOLDER)


def is_there() -> bool:
    return bool(mark())


def mark() -> int:
    """A number of the store's file; another one is another sample, and 0 is none."""
    try:
        return os.stat(os.path.join(place(), STORE)).st_ino
    except OSError:
        return 0


def open_sample(tenant: str = settings.TENANT, clock: Clock | None = None) -> Limpet:
    """The sample as it is on this machine."""
    if not is_there():
        raise errors.no_entry("project", PROJECT, "`limpet demo --keep` makes it.")
    return _opened(place(), tenant, clock)


def make(now: int, tenant: str = settings.TENANT) -> str:
    """Make the sample and return its folder. One that is there is replaced when the new one is complete."""
    Home(settings.data_folder()).make()
    new = tempfile.mkdtemp(prefix=f"{FOLDER}.", suffix=".new", dir=settings.data_folder())
    try:
        _tell(new, tenant, now)
        remove()
        _rename(new)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return place()


def _rename(new: str) -> None:
    try:
        os.rename(new, place())
    except OSError:
        if not is_there():  # else another one was made at the same moment, and is as good
            raise


def remove() -> None:
    """Delete the sample, and nothing else."""
    shutil.rmtree(place(), ignore_errors=True)


class _Days:
    """A clock that the story sets. It goes on a little with every look."""

    def __init__(self, begin: int) -> None:
        self.now = begin

    def __call__(self) -> int:
        self.now += 1_700
        return self.now

    def later(self, time: int) -> None:
        self.now += time


def _opened(folder: str, tenant: str, clock: Clock | None) -> Limpet:
    store = wiring.choose_store(os.path.join(folder, STORE))
    plain = Limpet(store, Scope(tenant, PROJECT), root=folder)
    return plain if clock is None else Limpet(store, Scope(tenant, PROJECT), clock=clock, root=folder)


def _tell(folder: str, tenant: str, now: int) -> None:
    days = _Days(now - 3 * DAY)
    _write(folder, "prices.py", PRICES)
    with _opened(folder, tenant, days) as hold:
        _monday(hold, days)
        days.later(20 * HOUR)
        _tuesday(hold, days)
        days.later(20 * HOUR)
        _write(folder, "prices.py", PRICES.replace(PRICES.splitlines(keepends=True)[-1], LATER_SHIPPING))
        days.later(2 * HOUR)
        _wednesday(hold)


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _call(session: Session, name: str, **arguments: object) -> None:
    session.hold.call(name, arguments, session=session.id)


def _monday(hold: Limpet, days: _Days) -> None:
    """Rounding: a long talk that fills the window, notes, a decision, a handoff."""
    session = hold.session("round-totals")
    session.begin("Round the totals of the cart once")
    _call(session, "init_journal")
    _call(
        session, "write_memory", key="tests", content="`make test-shop` takes 40 seconds; `make test` takes 20 minutes."
    )
    _call(session, "write_memory", key="database", content="We use Postgres 14 in production.")
    _call(
        session,
        "write_memory",
        key="shipping",
        content="Shipping is free from 50.00 on; below it costs 4.90.",
        anchors=["prices.py:13-14"],
    )
    _call(session, "write_memory", key="freeze", content="No releases until Thursday: the fair.", expires="1d")
    _talk(session)
    session.notepad.write(PLAN)
    session.notes.add(ROUNDING, tags=["rounding", "decision"])
    session.notes.add(
        "SHOP-212: 17 invoices of March differ by one cent. Mira has the list.", tags=["rounding", "ticket"]
    )
    session.pin("Mira decides about prices. Ask before shipping() changes.")
    _call(session, "begin_task", description="Round once, at the end")
    days.later(HOUR)
    _call(session, "end_task", summary="`total()` rounds once; 400 of 400 invoices agree.")
    _call(
        session,
        "log_decision",
        title="Round once",
        decision="Totals are rounded once, at the end.",
        rationale="Rounding every line made 17 of 400 invoices differ by a cent.",
        evidence=["prices.py:9 return round(net * (1 + TAX))"],
        scenarios=["usual: three items", "edge: an empty cart", "failure: a price below zero"],
    )
    _call(session, "update_journal", section="goal", text="No invoice differs from its receipt")
    _call(
        session, "update_journal", section="question", text="Does the report of the month round every line on purpose?"
    )
    session.handoff.write(HANDOFF)


def _talk(session: Session) -> None:
    """What was said, until the window had to be compacted, and a little after it."""
    request = "Customers see totals that differ from the invoice by a cent (SHOP-212). Find out why, and repair it."
    talk: list[Message] = [user(request)]
    for turn in range(TALK_MOST):
        step = session.window.next(talk, limit=WINDOW_TOKENS)
        if isinstance(step, Compact):
            break
        talk += _turn(turn)
    talk += [user("And the report of the month?"), assistant("It still rounds every line. That is **next**.")]
    session.window.next(talk, limit=WINDOW_TOKENS)
    tests = "\n".join(f"tests/test_invoices.py::test_invoice_{n:03} PASSED" for n in range(400))
    failed = "\n".join(f"FAILED tests/test_invoices.py::test_invoice_{n:03} - assert {n + 1} == {n}" for n in range(17))
    session.outputs.keep("shell", f"{tests}\n{failed}\n17 failed, 383 passed in 38.2s", call="make test-shop")


def _turn(number: int) -> list[Message]:
    if number == 0:
        call = Call("c0", "read_file", json.dumps({"path": "prices.py"}))
        return [assistant("I look at how totals are made.", call), result("c0", PRICES)]
    call = Call(f"c{number}", "shell", json.dumps({"command": f"python check_invoice.py {300 + number}"}))
    rows = "\n".join(
        f"line {at}: net {at * 137 % 991:>4} cents, rounded {at * 137 % 991 + at % 2:>4}" for at in range(14)
    )
    verdict = "differs by one cent" if number % 5 == 2 else "agrees"
    return [
        assistant(f"Invoice {300 + number} next.", call),
        result(f"c{number}", f"invoice {300 + number}\n{rows}\n{verdict}"),
        assistant(f"Invoice {300 + number} {verdict}." + (" Every line was rounded in it." if number % 5 == 2 else "")),
    ]


def _tuesday(hold: Limpet, days: _Days) -> None:
    """Another agent goes on: it takes up the handoff, gives work away, and corrects a fact."""
    session = hold.session("month-report")
    session.begin("Round the report of the month like the cart")
    session.context()
    session.used()
    talk = [
        user("Go on with the report of the month."),
        assistant(
            "The handoff says that `report.py` still rounds every line. I check which database the report reads.",
            Call("d1", "shell", json.dumps({"command": "psql --version"})),
        ),
        result("d1", "psql (PostgreSQL) 16.4"),
        assistant("Production is on **Postgres 16** by now. I correct what we remembered."),
    ]
    session.window.next(talk, limit=200_000)
    _call(session, "write_memory", key="database", content="We use Postgres 16 in production, since the move in May.")
    old = session.notes.add("The report reads the replica `db-2`.", tags=["report"])
    days.later(HOUR)
    new = "Correction: the report reads the primary. `db-2` was switched off."
    session.notes.add(new, tags=["report"], replaces=old.id)
    child = session.spawn("Find every place that rounds a line", notes=[])
    child.notes.add("Only `report.py:48` and `export.py:12` round a line.", tags=["rounding"])
    child.report("Two places: report.py:48 and export.py:12.")
    orders = [{"order": 9_000 + n, "total": n * 137 % 9_973, "paid": n % 3 != 0} for n in range(400)]
    session.outputs.keep("http_get", json.dumps(orders, indent=1), call="GET /orders?month=3")
    session.notepad.write("# Report\n\n- [x] which places round a line\n- [ ] change `report.py:48`\n")
    session.handoff.write("`report.py:48` is next; the test for it is written and fails.")


def _wednesday(hold: Limpet) -> None:
    session = hold.session("support-text")
    session.begin("Tell support what changes for customers")
    session.notes.add("Support answers: *totals may differ by one cent from invoices before March.*", tags=["support"])
