"""`limpet doctor --url`: a server looked at from where its clients stand."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from doors.cli_runner import COMMAND
from doors.team_kit import PROJECT, now_ms, revoke, stored, team_server


def asked(folder: Path, url: str, token: str | None = None) -> tuple[int, dict[str, tuple[str, str]]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("LIMPET_")}
    if token:
        env["LIMPET_TOKEN"] = token
    done = subprocess.run(
        [*COMMAND, "doctor", "--url", url, "--json"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {one["name"]: (one["state"], one["detail"]) for one in found}


def test_a_good_server_and_every_kind_of_token(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    good = stored(store, "read", expires="30d").secret
    soon = stored(store, "admin", projects=("*",), expires="2d").secret
    gone = stored(store, "read", name="gone")
    revoke(store, gone.token.id)
    with team_server(store, tmp_path) as url:
        code, found = asked(tmp_path, url, good)
        assert code == 0
        states = {name: state for name, (state, _) in found.items()}
        fine = {"reachable", "clock", "origin", "host", "token", "expiry", "version", "store"}
        assert states == dict.fromkeys(fine, "ok") | {"TLS": "info"}
        assert found["token"][1] == f"scope read, projects {PROJECT}"
        assert "soon" in asked(tmp_path, url, soon)[1]["expiry"][1]
        code, found = asked(tmp_path, url, gone.secret)
        assert (code, found["token"][0]) == (5, "problem")
        assert asked(tmp_path, url)[1]["token"][0] == "info"
    assert not (tmp_path / ".limpet").exists()


@contextmanager
def other(headers: Mapping[str, str], body: Any = None) -> Iterator[str]:
    """Something else that answers every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = json.dumps(body).encode()
            self.send_response_only(200)
            for name, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_is_wrong_is_said_with_what_to_do(tmp_path: Path) -> None:
    with other({}, {"hello": 1}) as url:
        code, found = asked(tmp_path, url)
        assert (code, found["reachable"][0]) == (5, "problem")
    code, found = asked(tmp_path, url)  # now nobody listens there
    assert (code, "does not answer" in found["reachable"][1]) == (5, True)
    # A clock that is an hour off, and a proxy that lets every Host and Origin through.
    with other({"Date": formatdate(now_ms() / 1_000 + 3_600, usegmt=True)}, {"status": "ok"}) as url:
        code, found = asked(tmp_path, url)
        assert code == 5
        assert [name for name, (state, _) in found.items() if state == "problem"] == ["clock", "origin", "host"]
        assert "seconds ahead of ours" in found["clock"][1]
