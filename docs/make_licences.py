"""Writes docs/licences.md: whose code a user installs with Limpet, and on what terms. `make docs` runs it."""

from __future__ import annotations

import importlib.metadata
import pathlib
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = pathlib.Path(__file__).parent
BASE = "base"

# What older packages write in place of an expression, and the expression for it.
EXPRESSIONS = {
    **{plain: plain for plain in ("MIT", "MPL-2.0", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "PSF-2.0")},
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    "MPL-2.0 AND MIT": "MPL-2.0 AND MIT",
    "any-OSI": "any-OSI",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
}


class Used(NamedTuple):
    licence: str
    wanted_by: frozenset[str]  # "base", or the extras that bring it


def licence_of(package: str) -> str:
    """The terms as an SPDX expression; empty when the package does not say them in a way we know."""
    known = importlib.metadata.metadata(package)
    for expression in known.get_all("License-Expression") or []:
        return str(expression)
    # Some put the whole text of their licence there; its first line is its name.
    said = [*(text.partition("\n")[0] for text in known.get_all("License") or []), *(known.get_all("Classifier") or [])]
    return next((EXPRESSIONS[words] for words in said if words in EXPRESSIONS), "")


def everything_used() -> dict[str, Used]:
    """Each package that `pip install 'limpet[all extras]'` brings here, and who wants it."""
    extras = importlib.metadata.metadata("limpet").get_all("Provides-Extra") or []
    found: dict[str, set[str]] = {}
    for extra in ("", *(name for name in extras if name != "all")):
        for package in _closure("limpet", frozenset({extra}), set()):
            found.setdefault(package, set()).add(extra or BASE)
    found.pop("limpet", None)
    return {
        package: Used(licence_of(package), frozenset({BASE} if BASE in wanted else wanted))
        for package, wanted in sorted(found.items())
    }


def _closure(package: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    package = str(canonicalize_name(package))
    if (package, extras) in seen:
        return set()
    seen.add((package, extras))
    try:
        requires = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return set()  # for another platform
    found: set[str] = {package}
    for line in requires:
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            found |= _closure(wanted.name, frozenset(wanted.extras), seen)
    return found


def licences() -> str:
    lines = [
        "# Licences",
        "",
        "Limpet is under Apache-2.0 (`LICENSE`). These packages come with it, `base` always and the others with the",
        "extra named. Written by `make docs` from what the packages say of themselves, on Linux with Python 3.11; the",
        "wheel also carries a CycloneDX list of the base packages (`limpet-*.dist-info/sboms`).",
        "",
        "| package | licence | comes with |",
        "|---|---|---|",
    ]
    for package, used in everything_used().items():
        lines.append(f"| {package} | {used.licence} | {', '.join(sorted(used.wanted_by))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    (HERE / "licences.md").write_text(licences(), encoding="utf-8")
