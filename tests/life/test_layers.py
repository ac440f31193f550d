"""A person's preferences in every project, and a team's memory in files, through doors in processes of their own."""

from __future__ import annotations

import asyncio
import json

from life.kit import Computer


def test_a_preference_is_proposed_by_an_agent_and_counts_everywhere_once_accepted(computer: Computer) -> None:
    asyncio.run(_preference(computer))


async def _preference(computer: Computer) -> None:
    work, hobby = computer.repository("work"), computer.repository("hobby")
    async with computer.agent(work, "--profile", "full") as agent:
        answer = await agent.call("write_memory", key="style", content="Answer in German", layer="person")
    assert "waits" in str(answer) or "proposed" in str(answer)
    assert "German" not in computer.limpet("context", where=hobby)
    (item,) = json.loads(computer.limpet("review", "--json", where=hobby))["proposals"]
    assert (item["layer"], item["content"]) == ("person", "Answer in German")
    computer.limpet("review", "accept", item["id"], "--yes", where=hobby)
    assert "Answer in German" in computer.limpet("context", where=hobby)
    assert "Answer in German" in computer.limpet("context", where=work)
    assert computer.limpet("memory", "write", "tool", "I use Helix", "--layer", "person", where=hobby)
    assert "Helix" not in computer.limpet("context", where=work), "no terminal: it waits like what an agent writes"


def test_a_team_shares_memory_through_git_alone(computer: Computer) -> None:
    asyncio.run(_team(computer))


async def _team(computer: Computer) -> None:
    first = computer.repository("service")
    computer.limpet("memory", "write", "database", "We use Postgres 16", "--layer", "team", where=first)
    computer.run("git", "add", "--all", "--force", where=first)
    computer.run("git", "commit", "--quiet", "--message", "Share what we know", where=first)
    second = computer.clone(first, "clone")
    assert "Postgres" not in computer.limpet("context", where=second)
    assert "`limpet trust` shows what is new there" in computer.limpet("memory", "list", "--json", where=second)
    assert "We use Postgres 16" in computer.limpet("trust", "--show", where=second)
    computer.refused("trust", where=second)
    computer.limpet("trust", "--yes", where=second)
    async with computer.agent(second, "--profile", "full") as agent:
        assert "Postgres 16" in str(await agent.call("search_memory", query="Postgres"))
        await agent.call("write_memory", key="database", content="We use Postgres 17", layer="team")
    assert "Postgres 17" in (second / ".limpet/memory/database.md").read_text(encoding="utf-8")
    computer.run("git", "commit", "--quiet", "--all", "--message", "Correct it", where=second)
    computer.run("git", "pull", "--quiet", str(second), "HEAD", where=first)
    assert "Postgres" not in computer.limpet("context", where=first), "what git brought is to be looked at"
    computer.limpet("trust", "--yes", where=first)
    assert "Postgres 17" in computer.limpet("context", where=first)
    computer.limpet("untrust", where=first)
    assert "Postgres" not in computer.limpet("context", where=first)


def test_over_http_a_program_proposes_and_decides_nothing(computer: Computer) -> None:
    work = computer.repository("work")
    with computer.served(work) as http:
        path = "/api/v1/operations/"
        body = {"key": "style", "content": "Answer in German", "layer": "person"}
        answer = http.post(f"{path}write_memory", json=body).json()
        assert answer["status"] == "proposed"
        refusal = http.post(f"{path}accept_proposal", json={"id": answer["proposed"]})
        assert refusal.status_code == 400
        assert "person's decision" in refusal.text
        page = http.get("/review", headers={"Accept": "text/html"}).text
        assert "Answer in German" in page
        assert "1 text" in page or "for person" in page
        body = {"key": "database", "content": "We use Postgres 16", "layer": "team"}
        assert http.post(f"{path}write_memory", json=body).status_code == 400, "a person begins with shared files"
        computer.limpet("memory", "write", "release", "Tag, then push", "--layer", "team", where=work)
        assert http.post(f"{path}write_memory", json=body).json()["layer"] == "team"
        page = http.get("/memory", headers={"Accept": "text/html"}).text
        assert "Tag, then push" in page
        assert "We use Postgres 16" in page
        assert http.post(f"{path}delete_memory", json={"key": "database", "layer": "team"}).json()["status"] == "ok"
    assert sorted(file.name for file in (work / ".limpet/memory").iterdir()) == ["release.md"]
