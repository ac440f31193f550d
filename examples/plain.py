"""A loop of your own, without a framework: tools, a window and three calls. `ask` stands for your provider's API."""

import json
from typing import Any

import limpet
from limpet import formats, user


def read_log(arguments: Any) -> str:
    return "\n".join(f"{hour:02d}:00 job {hour} {'FAILED: disk full' if hour == 13 else 'ok'}" for hour in range(300))


def ask(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    """Reads the log, writes down what it found, and answers: client.chat.completions.create(…) would do better."""
    called = sum("tool_calls" in message for message in messages)
    wanted = [("read_log", {}), ("update_notepad", {"operation": "append", "content": "- 13:00: disk full\n"})]
    if called == len(wanted):
        return {"role": "assistant", "content": messages[-1]["content"]}  # the last message shows the notepad
    function = {"name": wanted[called][0], "arguments": json.dumps(wanted[called][1])}
    return {"role": "assistant", "tool_calls": [{"id": f"c{called}", "type": "function", "function": function}]}


with limpet.open("plain.db") as hold:
    session = hold.session("nightly jobs")
    own = limpet.Tool("read_log", "The log of last night.", {"type": "object", "properties": {}}, read_log)
    tools = [*session.tools(), own]
    talk = [user("Which job failed, and why?")]
    while True:
        step = session.window.next(talk, limit=128_000)  # 1: what to send
        native = ask(formats.openai_chat.write(step.messages), [tool.openai_chat() for tool in tools])
        session.window.sent()  # 2: it was answered; give it the tokens your provider counted
        (reply,) = formats.openai_chat.read([native])
        talk.append(reply)
        if not reply.calls():
            break
        talk += session.answer(reply, tools)  # 3: big results become references, what fails becomes a result
    session.window.keep(talk)
    print(f"The log had 300 lines; a preview of it went to the model, which wrote down:\n{reply.text()}")
