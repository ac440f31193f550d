"""Writes src/limpet/text/vocabulary.bin: which beginnings of Latin words are tokens of o200k, as a Bloom filter.

    python tests/token_filter.py

A filter of 2^21 bits answers for the 130,000 tokens of Latin letters. About one in a hundred other texts passes for a
token too, which the estimate allows for.
"""

from __future__ import annotations

import re
from pathlib import Path

import splintr

from limpet.text import tokens

PATH = Path(tokens.__file__).with_name(tokens.VOCABULARY)
# One sign may stand before the letters: a space, an underscore, a dot.
_LATIN = re.compile(rb"[ -@\[-`{-~]?(?:[A-Za-z]|[\xc3-\xca][\x80-\xbf]|\xe1[\xb8-\xbb][\x80-\xbf])+")


def filter_bits() -> bytes:
    o200k = splintr.Tokenizer.from_pretrained("o200k_base")
    bits = bytearray(tokens.FILTER_BYTES)
    for number in range(199_998):  # what follows are marks of control
        token = bytes(o200k.decode_bytes([number]))
        if len(token) >= tokens.SURE_BYTES and _LATIN.fullmatch(token):
            for place in tokens.filter_places(token):
                bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


if __name__ == "__main__":
    PATH.write_bytes(filter_bits())
