"""The dashboard in headless Chromium: how soon the story of a long session is painted, and leafing through many notes.

The floor is the emptiest page of the same server in the same browser: what a connection, a process and a paint cost.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import stores
from bench.figures import compare, remark
from bench.measure import Sizes, clean_environment, percentile, ratio, span, table, verdict
from limpet.api import Limpet
from limpet.doors.dashboard.pages import NAVIGATION
from limpet.model import NOTE, NOTEPAD, TASK, Draft, Stamp
from limpet.store import Decide
from limpet.window import transcript
from limpet.window.messages import Call, Message, assistant, result, user

EVENTS = 10_000  # of the session whose story is painted
PAINT_SECONDS = 1.0
ANSWER_SECONDS = 0.3
BATCH = 500  # changes that are written at once
TOKEN = "a-token-for-the-benchmark"  # noqa: S105 - of a server that lives for a minute
BEGAN = 1_770_000_000_000
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
PAINT = """
const done = arguments[0];
const look = () => {
  const found = performance.getEntriesByName('first-contentful-paint')[0];
  const page = performance.getEntriesByType('navigation')[0];
  if (found && page.loadEventEnd) done([found.startTime, page.responseEnd, page.loadEventEnd]);
  else setTimeout(look, 20);
};
look();
"""


def run(sizes: Sizes) -> None:
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        remark("Not measured: this needs Chromium (Debian: apt-get install chromium chromium-driver).")
        return
    place = stores.folder("dashboard")
    notes = sizes.pick(100_000, 5_000)
    with stores.open_ours(place / "ours.db") as hold:
        project = hold.scope.project
        _story(hold)
        _notes(hold, notes)
        _talk(hold, messages := sizes.pick(10_000, 1_000))
        for number in range(sessions := sizes.pick(1_000, 100)):
            hold.session(f"w{number:04}").begin(f"Repair the boiler of house {number}")
    pages = {
        "sign-in (floor)": "/sign-in",
        f"story of {EVENTS:,} events": "/session?id=long",
        "the same, notepad only": "/session?id=long&kind=notepad",
        f"notes, of {notes:,}": "/notes",
        f"conversation of {messages:,} messages": f"/messages?session=talk&first={messages // 2}",
        f"sessions, of {sessions:,}": "/sessions?page=1",
        f"recall, of {notes + EVENTS:,} texts": "/recall?q=what+does+note+77+say+about+its+topic",
        "the reference, of the documentation": "/docs?page=reference",
    }
    pages |= {page.name: f"/{page.name}" for page in NAVIGATION if page.name not in ("notes", "recall", "sessions")}
    index = [sys.executable, "-m", "limpet", "index", "--store", str(place / "ours.db"), "--project", project]
    static = clean_environment() | {"LIMPET_SET": "recall.model=static"}
    subprocess.run(index, check=True, env=static, cwd=place, capture_output=True)
    found: dict[str, list[list[float]]] = {name: [] for name in pages}
    with _served(place, project) as (url, entrance), _chromium(browser, driver) as window:
        _sign_in(window, entrance)
        for turn in range(sizes.pick(9, 3) + 1):
            for name, path in pages.items():
                window.get(url + path)
                paint = [one / 1_000 for one in window.execute_async_script(PAINT)]
                if turn:  # the first time also starts what a browser starts once
                    found[name].append(paint)
    _tell(found)


def _tell(found: dict[str, list[list[float]]]) -> None:
    floor = min(one[0] for one in found["sign-in (floor)"])
    usual = percentile([one[0] for one in found["sign-in (floor)"]], 0.5)
    lines = []
    for name, times in found.items():
        paints = [one[0] for one in times]
        best, middle = min(paints), percentile(paints, 0.5)
        goal = verdict(middle, PAINT_SECONDS, f"≤ {PAINT_SECONDS:.0f} s")
        answer = percentile([one[1] for one in times], 0.5)
        soon = verdict(answer, ANSWER_SECONDS, f"≤ {1_000 * ANSWER_SECONDS:.0f} ms")
        if times is not found["sign-in (floor)"]:
            compare(f"first paint, median: {name}", middle, "the sign-in page", usual, goal)
        lines.append([name, span(best), span(middle), span(answer), soon, ratio(best, floor), goal])
    heads = ("page", "first paint, best", "median", "whole answer there, median", "goal", "x floor", "goal (paint)")
    table("First paint in headless Chromium, from the click on", heads, lines)


def _story(hold: Limpet) -> None:
    """One long session: notes, a notepad that is edited again and again, tasks."""
    text = "The quick brown fox of the parser jumps over two tokens of lookahead. " * 3
    kinds = ((NOTE, "note_{}"), (NOTEPAD, "long"), (TASK, "task_{}"), (NOTE, "note_{}"))
    for first in range(0, EVENTS, BATCH):
        edits: list[tuple[str, str, Decide]] = []
        for number in range(first, min(EVENTS, first + BATCH)):
            kind, key = kinds[number % len(kinds)]
            extra: dict[str, Any] = {"state": "open", "depth": 1, "first": 0} if kind == TASK else {}
            lines = "".join(f"- step {at}\n" for at in range(number % 60)) if kind == NOTEPAD else ""
            draft = Draft(f"{number}: {text}\n{lines}", "long", ("bench",) if kind == NOTE else (), extra=extra)
            edits.append((kind, key.format(BEGAN + number), lambda before, draft=draft: draft))  # type: ignore[misc]
        hold.store.entries.edit_all(hold.scope, edits, Stamp("agent/bench", "bench", "long", BEGAN + first * 1_000))


def _talk(hold: Limpet, count: int) -> None:
    """One long conversation, as an import of it would store it."""
    ctx = hold.context("talk", "agent/bench")
    for first in range(0, count, BATCH):
        said: list[Message] = []
        for number in range(first, min(count, first + BATCH), 4):
            call = Call(f"c{number}", "shell", json.dumps({"command": f"cat part{number}.txt"}))
            said += [user(f"Question {number}: why does **part {number}** differ?"), assistant("I look.", call)]
            said += [
                result(f"c{number}", f"row {number}\n" * 30),
                assistant(f"Part {number} agrees.\n\n- one\n- `two`"),
            ]
        transcript.append(ctx, first, [transcript.StoredMessage.of(message, 20) for message in said])


def _notes(hold: Limpet, count: int) -> None:
    for first in range(0, count, BATCH):
        edits: list[tuple[str, str, Decide]] = []
        for number in range(first, min(count, first + BATCH)):
            draft = Draft(f"Note {number} about topic {number % 97}.", f"s{number % 40}", (f"t{number % 30}",))
            key = f"note_{BEGAN + 50_000_000 + number}"
            edits.append((NOTE, key, lambda before, draft=draft: draft))  # type: ignore[misc]
        stamp = Stamp("agent/bench", "add_note", f"s{first // BATCH % 40}", BEGAN + 50_000_000 + first)
        hold.store.entries.edit_all(hold.scope, edits, stamp)


@contextmanager
def _served(place: Path, project: str) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", "limpet", "serve", "--store", str(place / "ours.db"), "--project", project]
    command += ["--port", "0", "--json"]
    env = clean_environment() | {"LIMPET_TOKEN": TOKEN}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=place)
    try:
        assert process.stdout is not None
        reply = json.loads(process.stdout.readline())
        yield reply["url"].removesuffix("/mcp"), reply["dashboard"]
    finally:
        process.terminate()
        process.communicate(timeout=20)


@contextmanager
def _chromium(browser: str, driver: str) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS:
        options.add_argument(flag)
    window = webdriver.Chrome(options, Service(driver))
    window.set_window_size(1360, 900)
    try:
        yield window
    finally:
        window.quit()


def _sign_in(window: Any, entrance: str) -> None:
    window.get(entrance)
    until = time.monotonic() + 20
    while "/overview" not in window.current_url and time.monotonic() < until:
        time.sleep(0.05)
