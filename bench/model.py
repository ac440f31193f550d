"""A small real model for benchmarks: `BENCH_MODEL` is its file, `BENCH_MODEL_PYTHON` a Python that has `xllamacpp`.

That package is none of this project's. The model answers greedily, under a JSON schema that names the tools there are.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

CHILD = Path(__file__).with_name("model_child.py")
TOKENS = 200  # of one answer
ABSENT = "\nNot measured: BENCH_MODEL names no file of a model, or BENCH_MODEL_PYTHON no Python that has xllamacpp."


class Said(NamedTuple):
    text: str
    read: int  # tokens of the whole prompt, also of what the model still had in its cache
    written: int

    @property
    def answer(self) -> dict[str, Any]:
        """The object it says. What went on until the tokens were spent has a name at best."""
        try:
            found: dict[str, Any] = json.loads(self.text)
        except ValueError:
            name = self.text.partition('"name":')[2].partition('"')[2].partition('"')[0]
            return {"name": name, "arguments": {}}
        return found


class Model:
    """A process that holds the model, asked one prompt after the other."""

    def __init__(self, path: str, python: str) -> None:
        self.process = subprocess.Popen(
            [python, str(CHILD), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._in, self._out = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)

    def ask(
        self, messages: Sequence[Mapping[str, str]], schema: object, *, tokens: int = TOKENS, slot: int = 0
    ) -> Said:
        """Prompts that begin alike are read once in a slot, of which there are three."""
        request = {"messages": messages, "schema": schema, "tokens": tokens, "slot": slot}
        print(json.dumps(request), file=self._in, flush=True)
        line = self._out.readline()
        if not line:
            raise RuntimeError(f"The model's process ended with {self.process.wait()}.")
        answer = json.loads(line)
        return Said(answer["said"], answer["read"], answer["written"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._in.close()
        self.process.wait()
        self._out.close()


def given() -> Model | None:
    """The model that the environment names."""
    path, python = (os.environ.get(f"BENCH_{name}", "") for name in ("MODEL", "MODEL_PYTHON"))
    return Model(path, python) if path and python else None


def for_model(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of an MCP server as a model is shown it."""
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}


def listing(tools: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(json.dumps({"type": "function", "function": tool}) for tool in tools)


def call_schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    """What a call of the tool looks like."""
    return {
        "type": "object",
        "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
