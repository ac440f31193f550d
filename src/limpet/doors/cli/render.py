"""How answers are printed: plain lines in a pipe, tables and colours on a terminal, JSON on demand.

Stored text can come from anywhere, so control characters are made visible before it is printed, on a terminal or not:
what is piped today is looked at tomorrow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from limpet import errors
from limpet.light import TYPE_CHECKING, Any, Protocol, json, re
from limpet.text.safe import visible

if TYPE_CHECKING:
    from rich.console import Console

Rows = Iterable[Sequence[object]]
GAP = 2  # columns between the fields of a table
SHORT_FIELD = 30  # columns; where a table is too wide, longer fields go on lines of their own
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
# Up to the last @: a password may hold one, and showing too little is the better mistake.
_IN_ADDRESS = r"(?<=://)([^:/?#@]*):.*@|(password=)[^&]*"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400  # seconds
_BEYOND_ASCII = re.compile(r"[^\x00-\x7e]")


class OutputClosed(Exception):
    """The reader of the output went away. Not an OSError, so that libraries do not handle it as theirs."""


class Screen(Protocol):
    """Where a command prints its answer."""

    def line(self, text: str, style: str = "") -> None:
        """A line that a command composed."""

    def block(self, text: str) -> None:
        """A stored text in full."""

    def diff(self, text: str) -> None:
        """A unified diff."""

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """One line per row in a pipe, fields separated by tabs and without a heading; a table on a terminal."""


def screen() -> Screen:
    return RichScreen() if sys.stdout.isatty() else PlainScreen()


class PlainScreen:
    def line(self, text: str, style: str = "") -> None:
        to_stdout(one_line(text))

    def block(self, text: str) -> None:
        if text:
            to_stdout(visible(text).removesuffix("\n"))

    def diff(self, text: str) -> None:
        self.block(text)

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        for row in rows:
            to_stdout("\t".join(one_line(str(cell)) for cell in row))


class RichScreen:
    def __init__(self) -> None:
        self._console = _console()

    def line(self, text: str, style: str = "") -> None:
        self._print(one_line(text), style)

    def block(self, text: str) -> None:
        if text:
            self._print(visible(text).removesuffix("\n"), "")

    def diff(self, text: str) -> None:
        styles = {"+": "green", "-": "red", "@": "cyan"}
        for line in text.removesuffix("\n").split("\n") if text else ():
            self._print(one_line(line), styles.get(line[:1], ""))

    def table(self, columns: Sequence[str], rows: Rows) -> None:
        """A table if it fits the terminal; otherwise a heading per row with its short fields, and its texts below."""
        cells = [[when(visible(str(cell))) for cell in row] for row in rows]
        if not cells:
            return
        widths = [max(map(_width, (name, *column))) for name, *column in zip(columns, *cells, strict=True)]
        if sum(widths) + GAP * len(widths) <= self._console.width:
            self._grid(columns, cells)
        else:
            self._cards(cells, widths)

    def _grid(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
        for index, name in enumerate(columns):
            table.add_column(name, style="" if index else "cyan", no_wrap=True)
        for row in cells:
            table.add_row(*map(Text, row))
        self._console.print(table)

    def _cards(self, cells: list[list[str]], widths: list[int]) -> None:
        """The first field is what people copy, so it begins a line and stays in one piece."""
        from rich.padding import Padding
        from rich.text import Text

        for first, *rest in cells:
            short = [cell for cell, width in zip(rest, widths[1:], strict=True) if cell and width <= SHORT_FIELD]
            heading = Text()
            heading.append(first, "cyan")
            heading.append("".join(f" · {cell}" for cell in short), "dim")
            self._console.print(heading, soft_wrap=_width(first) > self._console.width)
            for cell, width in zip(rest, widths[1:], strict=True):
                if cell and width > SHORT_FIELD:
                    self._console.print(Padding(Text(cell), (0, 0, 0, 2), expand=False))

    def _print(self, text: str, style: str) -> None:
        from rich.text import Text

        # A Text is taken literally: no markup, no emoji codes, no colouring of numbers.
        self._console.print(Text(text, style), soft_wrap=True)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    # NO_COLOR takes rich's colours away but leaves bold; without a colour system no code at all is written.
    plain = console.no_color or console.is_dumb_terminal
    return Console(highlight=False, markup=False, emoji=False, color_system=None) if plain else console


def _width(text: str) -> int:
    """Columns on a terminal, of the longest line."""
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def when(cell: str) -> str:
    """A moment as people say it: how long ago, or the local time. Any other text stays as it is."""
    if not _MOMENT.fullmatch(cell):
        return cell
    from datetime import datetime

    moment = datetime.fromisoformat(cell).astimezone()
    now = datetime.now().astimezone()
    seconds = (now - moment).total_seconds()
    if 0 <= seconds < _HOUR:
        return "just now" if seconds < _MINUTE else f"{int(seconds // _MINUTE)} min ago"
    if 0 <= seconds < _DAY and moment.date() == now.date():
        return f"{int(seconds // _HOUR)} h ago"
    return f"{moment:%Y-%m-%d %H:%M}"


def ask(question: str) -> None:
    """Go on when a person says yes."""
    to_stderr(f"{question} [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt


def one_line(text: str) -> str:
    return visible(text, keep_newlines=False)


def as_json(value: Any) -> str:
    """One line of JSON. Control and invisible characters are escaped, which means the same to every reader."""
    return quiet_json(json.dumps(value, ensure_ascii=False))


def quiet_json(line: str) -> str:
    """The same JSON without characters that act on a terminal."""
    return line if visible(line) == line else _BEYOND_ASCII.sub(_escaped, line)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if visible(character) == character:
        return character
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


def to_stdout(line: str) -> None:
    try:
        sys.stdout.write(_encodable(line, sys.stdout.encoding) + "\n")
    except OSError as problem:
        raise unwritten(problem) from problem


def flushed() -> None:
    """Everything that was printed is where it should be; until then a full disk may take it."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        raise unwritten(problem) from problem


def unwritten(problem: OSError) -> Exception:
    if isinstance(problem, BrokenPipeError):
        return OutputClosed()
    return errors.answer_lost(problem.strerror or str(problem))


def to_stderr(line: str) -> None:
    """A line beside the answer. That nothing reads it is no reason to fail."""
    try:
        sys.stderr.write(_encodable(line, sys.stderr.encoding) + "\n")
        sys.stderr.flush()
    except OSError:
        return


def _encodable(line: str, encoding: str | None) -> str:
    """The line in the encoding of the stream; other characters become escapes that JSON has too."""
    try:
        line.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return "".join(character if character.isascii() else json.dumps(character)[1:-1] for character in line)
    return line


# --- addresses of stores ----------------------------------------------------------------------------------------------


def file_of(store: str) -> str | None:
    """The absolute path of a store that is a file, None for a server's address."""
    path = store.removeprefix("sqlite://")
    return None if "://" in path else os.path.abspath(path)


def exists(store: str) -> bool:
    """Whether a store that is a file exists. A server is assumed to exist; whether it answers is seen later."""
    path = file_of(store)
    return path is None or os.path.lexists(path)


def shown_place(store: str) -> str:
    """A store's address without the password it may hold."""
    return file_of(store) or re.sub(
        _IN_ADDRESS, lambda match: f"{match[1]}:…@" if match[2] is None else f"{match[2]}…", store
    )
