"""Both implementations give the same."""

from __future__ import annotations

import hashlib

import pytest

from limpet.platform import SHORT
from limpet.stores.shared.checksums import checksum


@pytest.mark.parametrize("size", [0, 1, 63, 64, SHORT, SHORT + 1, 100_000])
def test_it_is_sha256_whatever_the_length(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    assert checksum(content) == hashlib.sha256(content).digest()
