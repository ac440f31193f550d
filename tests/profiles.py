"""How many examples property tests try.

`make test` uses the profile `short`: few examples, the same ones in every run, so that it passes every time. `make
test-slow` sets HYPOTHESIS_PROFILE=long and explores. An example that failed there becomes an `@example` of its test.
"""

from __future__ import annotations

import os

from hypothesis import settings

# A test machine may be slow and busy; the limit of a test is pytest's timeout, not Hypothesis's deadline.
settings.register_profile("short", max_examples=50, derandomize=True, database=None, deadline=None)
settings.register_profile("long", max_examples=1_000, deadline=None, print_blob=True)


def load() -> None:
    settings.load_profile(_name())


def fewer_examples(divisor: int) -> int:
    """For a test whose examples are slow: a part of the profile's number."""
    return max(1, settings().max_examples // divisor)


def chosen(*, short: int, long: int) -> int:
    """For a test whose number of examples is not a part of the profile's."""
    return long if _name() == "long" else short


def _name() -> str:
    return os.environ.get("HYPOTHESIS_PROFILE", "short")
