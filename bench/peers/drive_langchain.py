"""LangChain's SummarizationMiddleware over the scripted conversation; runs in LangChain's own environment."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage, ToolMessage, convert_to_messages
from langgraph.graph.message import add_messages

from bench.peers.script import Job, Said, answer, job, summarise

ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def said(message: BaseMessage) -> Said:
    return Said(ROLES[message.type], str(message.text))


def is_summary(message: BaseMessage) -> bool:
    return bool(message.additional_kwargs.get("lc_source") == "summarization")


def run(given: Job) -> list[list[Said]]:
    def written(messages: list[Any]) -> str:
        # The first paragraph of a summary is the middleware's own words.
        previous = "\n".join(str(one.text).partition("\n\n")[2] for one in messages if is_summary(one))
        return summarise(previous, [said(one) for one in messages if not is_summary(one)], given)

    middleware = SummarizationMiddleware(
        FakeListChatModel(responses=["not asked"]),
        trigger=("tokens", 1),  # whenever it is asked: when to compact is not what is compared
        keep=("tokens", given.tail),
        trim_tokens_to_summarize=None,  # the summariser sees everything
        summarizer=written,
    )
    nobody: Any = None  # the runtime, which it has no use for
    state: Any = []
    windows = []
    for part in given.parts:
        fresh: Any = convert_to_messages(part)
        state = add_messages(state, fresh)
        changed = middleware.before_model({"messages": state}, nobody)
        if changed is not None:
            state = add_messages(state, changed["messages"])
        assert not isinstance(state[0], ToolMessage)
        windows.append([said(message) for message in state])
    return windows


if __name__ == "__main__":
    answer({"SummarizationMiddleware": run(job())})
