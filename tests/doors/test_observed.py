"""What people who run a server see of its calls: numbers, spans and log lines, and never what is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from doors.mcp_client import meta, stdio_command
from doors.team_kit import Caller, calling, stored, team_server
from limpet import errors, telemetry, wiring

SECRET = "the stored words nobody else may see"


def did_things(url: str, token: str) -> None:
    with httpx2.Client(base_url=url, timeout=60) as http:
        caller = Caller(http, token)
        assert caller.tool("add_note", {"content": SECRET}, at="/p/home").status_code == 200
        assert caller.send("POST", "/p/home/api/v1/operations/add_note", {"content": SECRET}).status_code == 200
        assert caller.send("POST", "/p/home/api/v1/operations/update_note", {"id": SECRET, "done": True}).is_error
        assert Caller(http, None).send("GET", "/api/v1/whoami").status_code == 401


def test_metrics_and_a_log_line_a_call(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    admin, write = stored(store, "admin").secret, stored(store, "write", name="wendy").secret
    other = stored(store, "admin", tenant="umbra").secret
    with team_server(store, tmp_path, {}, "--team", "--metrics", "--log-json") as url:
        did_things(url, write)
        with httpx2.Client(base_url=url, timeout=60) as http:
            assert Caller(http, write).send("GET", "/metrics").status_code == 403
            assert Caller(http, other).send("GET", "/metrics").status_code == 404
            answer = Caller(http, admin).send("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'limpet_calls_total{operation="add_note",outcome="ok"} 2' in lines
    assert 'limpet_calls_total{operation="update_note",outcome="no_note"} 1' in lines
    assert 'limpet_call_seconds_bucket{operation="add_note",le="+Inf"} 2' in lines
    assert 'limpet_call_seconds_count{operation="add_note"} 2' in lines
    assert 'limpet_http_answers_total{status="401"} 1' in lines
    (entries,) = [line for line in lines if line.startswith("limpet_entries ")]
    assert int(entries.split()[1]) >= 2
    log = (tmp_path / "serve.log").read_text(encoding="utf-8")
    assert SECRET not in answer.text + log
    told = [json.loads(line) for line in log.splitlines()]
    assert [(one["operation"], one["outcome"]) for one in told] == [
        ("add_note", "ok"),
        ("add_note", "ok"),
        ("update_note", "no_note"),
    ]
    assert told[0].keys() == {"at", "operation", "by", "project", "outcome", "ms"}
    assert told[0]["by"] == "agent/mcp/wendy"


def test_nothing_is_shown_unless_asked_for(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    admin = stored(store, "admin").secret
    with team_server(store, tmp_path) as url, httpx2.Client(base_url=url, timeout=60) as http:
        did_things(url, admin)
        assert Caller(http, admin).send("GET", "/metrics").status_code == 404
    assert (tmp_path / "serve.log").read_text(encoding="utf-8") == ""
    code = "import sys, limpet; limpet.open(sys.argv[1]).close(); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_a_span_an_operation(tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with wiring.open(str(tmp_path / "limpet.db"), session="s") as hold:
        hold.call("add_note", {"content": SECRET})
        telemetry.watch(hold, [], traces=True)
        hold.call("add_note", {"content": SECRET})
        with pytest.raises(errors.LimpetError):
            hold.call("update_note", {"id": SECRET, "done": True})
        hold.elsewhere(hold.scope._replace(project="other")).call("list_notes", {})
    spans = exporter.get_finished_spans()
    assert [(one.name, (one.attributes or {})["limpet.outcome"]) for one in spans] == [
        ("limpet add_note", "ok"),
        ("limpet update_note", "no_note"),
        ("limpet list_notes", "ok"),
    ]
    assert (spans[2].attributes or {})["limpet.project"] == "other"
    assert SECRET not in "".join(one.to_json() for one in spans)


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_sends_its_spans_before_it_ends(tmp_path: Path) -> None:
    store = str(tmp_path / "limpet.db")
    token = stored(store, "write").secret
    with collector() as (place, got):
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": place, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        with team_server(store, tmp_path, settings, "--team", "--traces") as url:
            did_things(url, token)
            with calling(url, token) as caller:
                assert caller.tool("add_note", {"content": SECRET}).status_code == 200
                assert SECRET in caller.tool(SECRET).text
    sent = b"".join(got)
    assert sent.count(b"limpet add_note") == 3
    assert sent.count(b"add_note") == 2 * 3, "in the name and the operation of a span, and in no other one"
    assert SECRET.encode() not in sent


def talk(store: str, *options: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """`limpet mcp` from its first call to its end, as a client that closes the pipe ends it."""
    calls: list[tuple[str, dict[str, object]]] = [
        ("add_note", {"content": SECRET}),
        ("update_note", {"id": SECRET, "done": True}),
        ("list_notes", {}),
    ]
    lines = [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": meta()},
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    command = [*stdio_command(store), *options]
    sent = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    done = subprocess.run(
        command,
        input=sent,
        capture_output=True,
        env={**os.environ, "LIMPET_PROJECT": "home", **settings},
        timeout=90,
        check=True,
    )
    # A write that has to wait lets the calls after it pass, so replies are told apart by their ids.
    answers = sorted(map(json.loads, done.stdout.splitlines()), key=lambda answer: int(answer["id"]))
    assert [bool(answer["result"].get("isError")) for answer in answers] == [False, True, False]
    return done


def test_a_stdio_server_writes_a_line_a_call(store_url: str) -> None:
    done = talk(store_url, "--log-json")
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert sorted((one["operation"], one["outcome"]) for one in told) == [
        ("add_note", "ok"),
        ("list_notes", "ok"),
        ("update_note", "no_note"),
    ]
    assert {one["project"] for one in told} == {"home"}
    assert SECRET.encode() not in done.stderr
    assert talk(store_url).stderr == b"", "nothing unless asked for"


def test_a_stdio_server_sends_its_spans_before_it_ends(store_url: str) -> None:
    with collector() as (place, got):
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": place, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        done = talk(store_url, "--traces", **settings)
    sent = b"".join(got)
    assert [sent.count(name) for name in (b"limpet add_note", b"limpet update_note", b"limpet list_notes")] == [
        1,
        1,
        1,
    ]
    assert SECRET.encode() not in sent + done.stderr
