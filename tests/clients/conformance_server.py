"""Our server with the tools, resources and prompts that the conformance suite asks for by name.

Run as a program it serves over HTTP and prints its address. All but the fixtures is the product: the gate, the
transport, the handshake, and what every result is wrapped in.
"""

from __future__ import annotations

import base64
import socket
import sys

import uvicorn

from limpet import wiring
from limpet.doors.http import server
from limpet.protocol.jsonrpc import Json, RpcError, dumps
from limpet.protocol.mcp_server import ClientState, Handler, Surface

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n and one pixel").decode()
SOUND = base64.b64encode(b"RIFF and a short sound").decode()
MISSING_CAPABILITY = -32021
SAMPLING = "sampling"
NOTHING: Json = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def image() -> Json:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def embedded(uri: str, said: str, kind: str = "text/plain") -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


TOOLS: dict[str, Json] = {
    "test_simple_text": {"content": [text("This is a simple text response for testing.")]},
    "test_image_content": {"content": [image()]},
    "test_audio_content": {"content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {"content": [embedded("test://embedded-resource", "This is embedded.")]},
    "test_multiple_content_types": {
        "content": [text("Several:"), image(), embedded("test://mixed", dumps({"test": "data"}), "application/json")]
    },
    "test_error_handling": {"content": [text("This tool fails on purpose.")], "isError": True},
    "json_schema_2020_12_tool": {"content": [text("ok")]},
    "test_missing_capability": {"content": [text("The client can sample.")]},
}
RESOURCES: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "The text of a static resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
}
TEMPLATE = "test://template/{id}/data"
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


class Fixtures(Surface):
    """The surface, and beside what it says the fixtures."""

    def handler(self, method: str, params: Json, revision: str) -> Handler:
        found = _fixture(method, params)
        if found is not None:
            return lambda params, client, revision: found
        handler = super().handler(method, params, revision)

        def with_fixtures(params: Json, client: ClientState, revision: str) -> Json:
            reply = handler(params, client, revision)
            for name, more in _listed(method).items():
                kept = reply[name]
                assert isinstance(kept, list)
                reply = {**reply, name: [*kept, *more]}
            return reply

        return with_fixtures


def _fixture(method: str, params: Json) -> Json | None:
    name, uri, ref = params.get("name"), params.get("uri"), params.get("ref")
    if method == "completion/complete" and isinstance(ref, dict) and ref.get("name") in PROMPTS:
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    if method == "tools/call" and isinstance(name, str) and name in TOOLS:
        return _called(name, params)
    if method == "prompts/get" and isinstance(name, str) and name in PROMPTS:
        return {"messages": [{"role": "user", "content": part} for part in _prompt(name, params.get("arguments"))]}
    if method == "resources/read" and isinstance(uri, str) and uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if method == "resources/read" and isinstance(uri, str) and uri.startswith("test://template/"):
        told = dumps({"id": uri.split("/")[3], "templateTest": True})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": told}]}
    return None


def _called(name: str, params: Json) -> Json:
    meta = params.get("_meta")
    capabilities = meta.get("io.modelcontextprotocol/clientCapabilities") if isinstance(meta, dict) else None
    if name == "test_missing_capability" and not (isinstance(capabilities, dict) and SAMPLING in capabilities):
        data: Json = {"requiredCapabilities": {SAMPLING: {}}}
        raise RpcError(MISSING_CAPABILITY, "This tool needs a client that can sample.", data=data)
    return TOOLS[name]


def _prompt(name: str, arguments: object) -> list[Json]:
    given = arguments if isinstance(arguments, dict) else {}
    if name == "test_prompt_with_embedded_resource":
        return [embedded(str(given.get("resourceUri")), "Embedded."), text("Look at it.")]
    if name == "test_prompt_with_image":
        return [image(), text("Look at it.")]
    return [text(f"Prompt with {', '.join(f'{key}={value!r}' for key, value in given.items()) or 'no arguments'}")]


def _listed(method: str) -> dict[str, list[Json]]:
    if method == "tools/list":
        schemas = {"json_schema_2020_12_tool": SCHEMA_2020}
        return {
            "tools": [
                {"name": name, "description": "A fixture.", "inputSchema": schemas.get(name, NOTHING)} for name in TOOLS
            ]
        }
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": uri} for uri in RESOURCES]}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "template"}]}
    if method == "prompts/list":
        return {
            "prompts": [
                {
                    "name": name,
                    "description": "A fixture.",
                    "arguments": [{"name": one, "required": True} for one in arguments],
                }
                for name, arguments in PROMPTS.items()
            ]
        }
    return {}


if __name__ == "__main__":
    with wiring.open(sys.argv[1]) as hold, socket.create_server(("127.0.0.1", 0)) as listener:
        app = server.build_app(hold, "full", server.Offer(), kind=Fixtures)
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listener])
