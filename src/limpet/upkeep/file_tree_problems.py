"""The problems of files.py, in the words that models know from their memory tool. errors.py has the tree."""

from __future__ import annotations

from limpet.errors import BadInput, Conflict, NotFound, shown


def path_outside(path: object, root: str) -> BadInput:
    return BadInput("path_outside", f"Path must start with {root}, got: {shown(path)}. View {root} first.")


def path_refused(path: str, rule: str) -> BadInput:
    return BadInput("path_refused", f"The path {shown(path, 80)} is not allowed: {rule}. Choose another name.")


def no_file(path: str) -> NotFound:
    return NotFound("no_file", f"The path {path} does not exist. Please provide a valid path.")


def not_a_file(path: str) -> BadInput:
    return BadInput("not_a_file", f"The path {path} is a directory, not a file. Name a file in it.")


def file_exists(path: str) -> Conflict:
    return Conflict("file_exists", f"File {path} already exists. Edit it with str_replace or insert.")


def file_read_only(path: str, why: str) -> BadInput:
    return BadInput("file_read_only", f"The path {path} cannot be changed this way: {why}.")


def text_not_there(path: str, text: str) -> NotFound:
    return NotFound(
        "text_not_there",
        f"No replacement was performed, old_str `{shown(text, 200)[1:-1]}` did not appear verbatim in {path}. View it.",
    )


def text_not_unique(path: str, text: str, lines: list[int]) -> Conflict:
    return Conflict(
        "text_not_unique",
        f"No replacement was performed. Multiple occurrences of old_str `{shown(text, 200)[1:-1]}` in lines "
        f"{', '.join(map(str, lines))} of {path}. Please ensure it is unique.",
    )


def bad_insert_line(line: object, most: int) -> BadInput:
    return BadInput(
        "bad_insert_line",
        f"Invalid `insert_line` parameter: {shown(line)}. It should be within the range of lines of the file: "
        f"[0, {most}].",
    )


def bad_view_range(given: object, most: int) -> BadInput:
    return BadInput(
        "bad_view_range",
        f"Invalid `view_range` parameter: {shown(given)}. It should be two line numbers from 1 to {most}, the second "
        "not before the first, or -1 for the end.",
    )
