"""Ask a small model which tool it takes; run by `choices.py` in a Python that has xllamacpp.

Reads one JSON object (model, tools, asked) and writes one line of JSON an answer.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SYSTEM = """You are a coding agent. You may call one of these functions to assist with the situation:
<tools>
{tools}
</tools>
Answer with one JSON object: the name of the function that fits best, and its arguments."""
TOKENS = 200  # of one answer


def main() -> None:
    import xllamacpp  # of the other Python

    request: dict[str, Any] = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints
    params = xllamacpp.CommonParams()
    params.model.path = request["model"]
    params.n_ctx, params.n_parallel, params.warmup = 12_288, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(os.environ.get("BENCH_MODEL_THREADS", "1"))
    server = xllamacpp.Server(params)
    system = SYSTEM.format(
        tools="\n".join(json.dumps({"type": "function", "function": tool}) for tool in request["tools"])
    )
    schema = {"anyOf": [_call(tool) for tool in request["tools"]]}
    for text in request["asked"]:
        answer = server.handle_chat_completions(
            {
                "messages": [{"role": "system", "content": system}, {"role": "user", "content": text}],
                "temperature": 0,
                "max_tokens": TOKENS,
                "cache_prompt": True,
                "response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}},
            }
        )
        said = answer["choices"][0]["message"]["content"]
        try:
            found = json.loads(said)
        except ValueError:  # it went on until the tokens were spent; the name came first
            found = {"name": said.partition('"name":')[2].partition('"')[2].partition('"')[0], "arguments": {}}
        print(json.dumps(found), file=out, flush=True)


def _call(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    main()
