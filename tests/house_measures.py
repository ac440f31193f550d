"""The measures of the house: what a program can count about size, imports, names and prose.

`python tests/house_measures.py` prints all of them, `python tests/house_measures.py src/limpet/stores` those of one
folder with the places to look at. `test_house.py` holds each one to its limit.
"""

from __future__ import annotations

import ast
import io
import math
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "limpet"
PROSE_PAGES = ("README.md", "docs/architecture.md", "docs/architecture", "docs/why.md", "docs/glossary.md")

# Names that say nothing about the thing they name.
VAGUE = frozenset(
    [
        *("found", "given", "made", "told", "said", "one", "kept", "shown", "known"),
        *("wanted", "asked", "seen", "whole", "here", "there", "noted", "held", "other"),
    ]
)
# Words that technical English rarely needs, and "a file a noun" where it says "per".
STILTED = re.compile(
    r"\b(?:anew|who(?:m)?ever|whatever|whichever|nobody|somebody|anybody|everybody|stands?|stood|told|lies|mend(?:s|ed|ing)?|thereof|wherein)\b"
    r"|\bof (?:ours|theirs)\b"
    r"|\b(?:one|an?) [a-z]+ (?:a|an) (?:[a-z]+)(?=[.,;:)]|$)",
    re.IGNORECASE,
)
ABSOLUTE = re.compile(r"\b(?:only|never|nowhere)\b", re.IGNORECASE)
NAMED_TEST = re.compile(r"\btest_\w+")
VARIABLE = re.compile(r"\bLIMPET_[A-Z][A-Z_]*\b")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Place(NamedTuple):
    """Something that was counted, and where."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@cache
def sources(folder: Path = PACKAGE) -> tuple[Path, ...]:
    return tuple(sorted(folder.rglob("*.py"))) if folder.is_dir() else (folder,)


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


# --- size -------------------------------------------------------------------------------------------------------------


def modules_by_folder(folder: Path = PACKAGE) -> Counter[str]:
    return Counter(name_of(path.parent) for path in sources(folder))


def lines(folder: Path = PACKAGE) -> int:
    return sum(text_of(path).count("\n") for path in sources(folder))


@cache
def function_lengths(folder: Path = PACKAGE) -> list[int]:
    return sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in sources(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def percentile(values: list[int], share: float) -> int:
    return values[min(len(values) - 1, math.ceil(len(values) * share) - 1)]


# --- imports ----------------------------------------------------------------------------------------------------------


def _own_imports(node: ast.AST) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """The line, the module and the names of each import of our own package below a node."""
    for part in ast.walk(node):
        if isinstance(part, ast.ImportFrom) and (part.module or "").split(".")[0] == "limpet":
            yield part.lineno, str(part.module), tuple(alias.name for alias in part.names)
        elif isinstance(part, ast.Import):
            yield from ((part.lineno, alias.name, ()) for alias in part.names if alias.name.split(".")[0] == "limpet")


@cache
def imports_in_functions(folder: Path = PACKAGE) -> list[Place]:
    places = {
        Place(name_of(path), line, module)
        for path in sources(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for line, module, _names in _own_imports(node)
    }
    return sorted(places)


def unexplained_imports_in_functions(folder: Path = PACKAGE) -> list[Place]:
    """Those without a comment on the line itself or on the line above."""
    unexplained = []
    for place in imports_in_functions(folder):
        rows = text_of(ROOT / place.file).splitlines()
        if not any("#" in row for row in rows[max(0, place.line - 2) : place.line]):
            unexplained.append(place)
    return unexplained


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def import_graph() -> dict[str, set[str]]:
    """Which module imports which when it runs, at its top or inside a function; imports for types do not count."""
    modules = {module_name(path): path for path in sources()}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        tree = tree_of(path)
        typing_only = {line for node in ast.walk(tree) if _is_type_checking(node) for line, _, _ in _own_imports(node)}
        targets: set[str] = set()
        for line, module, names in _own_imports(tree):
            if line not in typing_only:
                inside = {f"{module}.{leaf}" for leaf in names} & modules.keys()
                targets |= inside
                if len(inside) < max(1, len(names)):  # something of the package itself
                    targets |= {module} & modules.keys()
        graph[name] = targets - {name}
    return graph


@cache
def import_cycles() -> list[tuple[str, ...]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    graph, index, low, stack, cycles = import_graph(), {}, {}, [], []  # type: ignore[var-annotated]

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = [stack.pop()]
            while group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                cycles.append(tuple(sorted(group)))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    for node in graph:
        if node not in index:
            visit(node)
    sys.setrecursionlimit(limit)
    return sorted(cycles)


# --- names ------------------------------------------------------------------------------------------------------------


def _bindings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def bindings(folder: Path = PACKAGE) -> int:
    return sum(1 for path in sources(folder) for _ in _bindings(tree_of(path)))


def vague_bindings(folder: Path = PACKAGE) -> list[Place]:
    return [
        Place(name_of(path), line, name)
        for path in sources(folder)
        for line, name in _bindings(tree_of(path))
        if name.strip("_").lower() in VAGUE
    ]


def repeated_class_names(folder: Path = PACKAGE) -> dict[str, list[str]]:
    """Public class names that more than one module defines."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sources(folder):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name_of(path))
    return {name: files for name, files in sorted(homes.items()) if len(files) > 1}


def environment_names() -> set[str]:
    return {
        name
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in VARIABLE.findall(node.value)
    }


def environment_readers() -> list[Place]:
    return [
        Place(name_of(path), node.lineno, ast.unparse(node))
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv", "os.environb")
    ]


def broad_excepts(folder: Path = PACKAGE) -> list[Place]:
    return [
        Place(name_of(path), node.lineno, "except Exception")
        for path in sources(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
    ]


# --- prose ------------------------------------------------------------------------------------------------------------


@cache
def _comments_and_docstrings(path: Path) -> list[tuple[int, str]]:
    return [*_comments(path), *_docstrings(path)]


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    if "#" not in text_of(path):
        return
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                first = node.body[0].lineno
                yield from ((first + row, line) for row, line in enumerate(text.splitlines()))


def prose(folder: Path = PACKAGE) -> Iterator[Place]:
    """The comments and docstrings of a folder, line by line; with the whole package also the pages about the house."""
    for path in sources(folder):
        yield from (Place(name_of(path), line, text) for line, text in _comments_and_docstrings(path))
    if folder == PACKAGE:
        for name in PROSE_PAGES:
            page = ROOT / name
            for path in [page] if page.is_file() else sorted(page.glob("*.md")):
                yield from (Place(name, row, text) for row, text in enumerate(text_of(path).splitlines(), 1))


@cache
def stilted(folder: Path = PACKAGE) -> tuple[list[Place], int]:
    """Lines with a stilted word, one place per word, and the number of all words."""
    places, words = [], 0
    for place in prose(folder):
        words += len(WORD.findall(place.text))
        places += [place._replace(text=f"{match[0]}: {place.text.strip()}") for match in STILTED.finditer(place.text)]
    return places, words


def absolutes(folder: Path = PACKAGE) -> list[Place]:
    """Lines of prose that promise "only", "never" or "nowhere" and name no test that holds them to it."""
    return [place for place in prose(folder) if ABSOLUTE.search(place.text) and not NAMED_TEST.search(place.text)]


# --- operations -------------------------------------------------------------------------------------------------------


def files_of_operation(name: str) -> list[str]:
    """The source files that must know an operation: those that write its name as a text, and its words."""
    files = [
        name_of(path)
        for path in sources()
        if any(isinstance(node, ast.Constant) and node.value == name for node in ast.walk(tree_of(path)))
        or any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(tree_of(path)))
    ]
    return files + [name_of(path) for path in (PACKAGE / "prompts" / "tools").glob(f"{name}.md")]


# --- the page ---------------------------------------------------------------------------------------------------------


def figures(folder: Path = PACKAGE) -> list[tuple[str, str]]:
    lengths, folders, kilo = function_lengths(folder), modules_by_folder(folder), lines(folder) / 1_000
    largest, most = folders.most_common(1)[0]
    places, words = stilted(folder)
    vague, names = vague_bindings(folder), bindings(folder)
    rows = [
        ("modules; largest folder", f"{len(sources(folder))}; {most} ({largest})"),
        ("lines", f"{lines(folder):,}"),
        ("longest file", f"{max(text_of(path).count(chr(10)) for path in sources(folder))}"),
        ("function lines p50 / p90 / p99 / max", " / ".join(str(percentile(lengths, s)) for s in (0.5, 0.9, 0.99, 1))),
        (
            "own imports inside functions; unexplained",
            f"{len(imports_in_functions(folder))}; {len(unexplained_imports_in_functions(folder))}",
        ),
        ("broad excepts per 1,000 lines", f"{len(broad_excepts(folder)) / kilo:.2f}"),
        ("vague bindings", f"{100 * len(vague) / names:.1f} % ({len(vague)} of {names:,})"),
        ("class names in several modules", f"{len(repeated_class_names(folder))}"),
        ("stilted words per 1,000", f"{1_000 * len(places) / max(1, words):.1f} ({len(places)} of {words:,})"),
        ("lines with only, never, nowhere and no test named", f"{len(absolutes(folder))}"),
    ]
    if folder == PACKAGE:
        rows += [
            ("import cycles, imports in functions counted", f"{len(import_cycles())}"),
            ("environment names", f"{len(environment_names())}"),
            ("modules that read the environment", f"{len({place.file for place in environment_readers()})}"),
        ]
    return rows


def main() -> None:
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PACKAGE
    for name, value in figures(folder):
        print(f"{name:52} {value}")
    if folder != PACKAGE:
        print("\nImports inside functions:", *imports_in_functions(folder), sep="\n  ")
        print("\nVague bindings:", *vague_bindings(folder), sep="\n  ")
        print("\nStilted:", *stilted(folder)[0], sep="\n  ")
        print("\nOnly, never, nowhere:", *absolutes(folder), sep="\n  ")
    else:
        print("\nImport cycles:", *(" ⇄ ".join(cycle) for cycle in import_cycles()), sep="\n  ")
        print("\nEnvironment:", *sorted(environment_names()), sep=" ")
        print("\nReaders of the environment:", *environment_readers(), sep="\n  ")
        print(
            "\nClasses:",
            *(f"{name}: {', '.join(files)}" for name, files in repeated_class_names().items()),
            sep="\n  ",
        )


if __name__ == "__main__":
    main()
