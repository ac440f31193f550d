"""Anthropic's memory tool: a folder of text files that a model wrote. Each file is one text, under its path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from limpet.importers.facts import Fact, File, Reader, Unread, fact

TOOL = "anthropic-memory"


def read(files: Iterable[File]) -> Iterator[Fact | Unread]:
    for file in files:
        text = decoded(file)
        yield text if isinstance(text, Unread) else fact(TOOL, file.path, text)


def decoded(file: File) -> str | Unread:
    if isinstance(file.body, str):
        return Unread(file.path, file.body)
    try:
        return file.body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Unread(file.path, "it is not UTF-8 text")


READER = Reader(TOOL, True, read)
