"""What a user installs: the same bytes from the same sources, with a true list of what comes along."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs.make_licences import everything_used

ROOT = Path(__file__).parent.parent
LOCKS = ("base.txt", "run.txt", "dev.txt")
# Terms that let anybody use and pass on the whole. The LGPL ones are used as they are, through their own interface.
FREE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "LGPL-3.0-only", "MIT", "MIT-0"),
    *("MPL-2.0", "PSF-2.0", "Zlib", "any-OSI"),
}


def pinned(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    found = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_locked_by_hash_and_names_no_server(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    blocks = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
    assert len(blocks) >= len(pinned(lock)) > 5  # a package may be there twice, for two kinds of machine
    assert [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert "://" not in text


def test_what_serving_needs_is_a_part_of_what_development_needs() -> None:
    """Both are installed into one environment, so a version must be the same in both lists."""
    assert pinned("base.txt").items() <= pinned("run.txt").items() <= pinned("dev.txt").items()


def test_the_list_of_packages_is_the_lock() -> None:
    listed = json.loads((ROOT / "requirements" / "base.cdx.json").read_text(encoding="utf-8"))
    packages = {re.sub(r"[-_.]+", "-", part["name"]).lower(): part["version"] for part in listed["components"]}
    assert packages == pinned("base.txt")
    assert all(part.get("licenses") for part in listed["components"])


def test_all_that_comes_along_is_free_to_use_and_named() -> None:
    named = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    for package, used in everything_used().items():
        terms = re.split(r" (?:AND|OR|WITH) ", re.sub(r"[()]", "", used.licence))
        assert set(terms) <= FREE, f"{package} is under {used.licence or 'terms it does not say'}"
        assert f"| {package} | {used.licence} |" in named, f"docs/licences.md does not name {package}: run `make docs`"


def test_two_builds_give_the_same_wheel_with_the_list_inside(tmp_path: Path) -> None:
    wheels = []
    for place in (tmp_path / "one", tmp_path / "two"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        wheels += list(place.glob("limpet-*.whl"))
    first, second = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels)
    assert first == second
    with zipfile.ZipFile(wheels[0]) as wheel:
        (listed,) = [name for name in wheel.namelist() if "/sboms/" in name]
        assert json.loads(wheel.read(listed))["bomFormat"] == "CycloneDX"
        assert not [name for name in wheel.namelist() if not name.startswith("limpet")]
        assert {"limpet/docs/pages.toml", "limpet/docs/faq.md", "limpet/docs/plots/compaction.svg"} <= set(
            wheel.namelist()
        )
