"""What a server remembers of tokens: nothing that somebody else changed more than half a second ago."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import anyio.from_thread
import pytest

from doors.team_kit import now_ms, revoke, stored
from limpet import limits
from limpet.doors.http.credentials import REMEMBERED_SECONDS, Credentials
from limpet.model import ACCESS, Stamp
from limpet.store import DELETE, Store
from limpet.upkeep import access_tokens
from limpet.wiring import choose_store

TRUST = limits.TOKEN_TRUST_MS / 1_000


class Ticks:
    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def opened(store_url: str) -> Iterator[Store]:
    found = choose_store(store_url)
    yield found
    found.close()


@pytest.fixture
def credentials(opened: Store, ticks: Ticks) -> Credentials:
    return Credentials(opened, clock=now_ms, local=None, ticks=ticks)


def who(credentials: Credentials, token: access_tokens.Created) -> str | None:
    found = anyio.run(credentials.principal, [f"Bearer {token.secret}"])
    return found and found.id


def test_a_token_that_another_process_revokes_is_believed_for_half_a_second(
    credentials: Credentials, store_url: str, ticks: Ticks
) -> None:
    token, other = stored(store_url), stored(store_url)
    assert (who(credentials, token), who(credentials, other)) == (token.token.id, other.token.id)
    ticks.now += 10 * TRUST
    assert who(credentials, token) == token.token.id, "what is good stays good"
    revoke(store_url, token.token.id)
    ticks.now += TRUST
    assert who(credentials, token) is None
    assert who(credentials, other) == other.token.id


def test_a_change_among_more_than_are_read_at_once_is_heard_of(
    credentials: Credentials, store_url: str, ticks: Ticks
) -> None:
    token = stored(store_url)
    assert who(credentials, token)
    revoke(store_url, token.token.id)
    for _ in range(limits.TOKEN_CHANGES_READ):
        stored(store_url)
    ticks.now += TRUST
    assert who(credentials, token) is None


def test_a_token_that_is_changed_while_it_is_looked_up_is_not_remembered(
    credentials: Credentials, store_url: str, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, plain = stored(store_url), access_tokens.recognised

    def slowly(store: Store, presented: str) -> access_tokens.Token | None:
        found = plain(store, presented)
        revoke(store_url, token.token.id)
        ticks.now += TRUST
        anyio.from_thread.run(credentials._hear)  # as another request does in the meantime
        return found

    with monkeypatch.context() as patch:
        patch.setattr(access_tokens, "recognised", slowly)
        assert who(credentials, token), "it was good when it was read"
    assert who(credentials, token) is None


def test_a_token_without_a_trace_in_the_history_is_gone_some_seconds_later(
    credentials: Credentials, opened: Store, store_url: str, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = stored(store_url)
    for _ in range(2):  # the first use is noted, which is a change too
        assert who(credentials, token)
        ticks.now += TRUST
    unheard = access_tokens.latest_changes(opened)
    monkeypatch.setattr(access_tokens, "latest_changes", lambda store: unheard)
    opened.entries.edit(
        access_tokens.HOME, ACCESS, token.token.id, lambda before: DELETE, Stamp("x/y", "delete", "", now_ms())
    )
    ticks.now += TRUST
    assert who(credentials, token), "nobody said so"
    ticks.now += REMEMBERED_SECONDS
    assert who(credentials, token) is None
