"""LangChain with Limpet: a night's log is read, a finding is noted, and tomorrow's run begins with the handoff.

A scripted chat model stands in for yours, so that this runs offline; everything else is as you would write it.
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

import limpet
from limpet.adapters.langchain import LimpetMiddleware


def read_log(night: str) -> str:
    """Read the log of a night."""
    return "\n".join(f"{night} {job:03d} {'FAILED: disk full' if job == 13 else 'ok'}" for job in range(300))


def call(name: str, arguments: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}"}])


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


model = Scripted(
    messages=iter(
        [
            call("read_log", {"night": "monday"}),
            call("add_note", {"content": "Job 13 failed on Monday: disk full", "tags": ["ops"]}),
            call("write_session_handoff", {"content": "Monday is read; read Tuesday next."}),
            AIMessage("Job 13 failed: the disk was full."),
            AIMessage("I go on with Tuesday."),
        ]
    )
)

with limpet.open("langchain.db") as hold:
    agent: Any = create_agent(model, tools=[read_log], middleware=[LimpetMiddleware(hold)])
    state = agent.invoke({"messages": "What failed?"}, {"configurable": {"thread_id": "monday"}})
    print("In place of the log the model read:", state["messages"][2].content.splitlines()[0])
    print("The answer on monday:", state["messages"][-1].text)
    state = agent.invoke({"messages": "Go on."}, {"configurable": {"thread_id": "tuesday"}})
    print("The answer on tuesday, in a session that saw only the handoff:", state["messages"][-1].text)
    print("Notes that every later session finds:", [note.content for note in hold.session("monday").notes.list()])
