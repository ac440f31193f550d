"""A small model that answers under a JSON schema; run by `model.py` in a Python that has xllamacpp.

Reads one JSON object a line (messages, schema, tokens, slot) and writes one a line: what it said, and the tokens of
both. What was read in a slot before is not read again as far as a new prompt begins alike.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SLOTS, SLOT_TOKENS = 3, 12_288


def main() -> None:
    import xllamacpp  # of the other Python

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx, params.n_parallel, params.warmup = SLOTS * SLOT_TOKENS, SLOTS, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(os.environ.get("BENCH_MODEL_THREADS", "1"))
    server = xllamacpp.Server(params)
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer = server.handle_chat_completions(
            {
                "messages": request["messages"],
                "temperature": 0,
                "max_tokens": request["tokens"],
                "cache_prompt": True,
                "id_slot": request["slot"],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "call", "schema": request["schema"]},
                },
            }
        )
        used = answer["usage"]
        said = {
            "said": answer["choices"][0]["message"]["content"],
            "read": used["prompt_tokens"],
            "written": used["completion_tokens"],
        }
        print(json.dumps(said), file=out, flush=True)


if __name__ == "__main__":
    main()
