"""A person is told when memory is kept where it does not last: in a container, in CI, in memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from life.kit import COMMAND, TIMEOUT_SECONDS, Computer
from limpet.home.lasting import CONTAINER_FILES, judged

IN_CONTAINER = any(map(os.path.exists, CONTAINER_FILES))
SHM = "/dev/shm"  # noqa: S108 - memory on every Linux
ROOT = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
LAYER = "22 1 0:40 / / rw,relatime - overlay overlay rw,lowerdir=/a\n"
VOLUME = "30 22 254:1 /v /data\\040of\\040ana rw,relatime - ext4 /dev/vdb rw\n"
MEMORY = "31 22 0:27 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n"


def said(computer: Computer, *words: str, **variables: str) -> str:
    project = computer.folder / "plain"
    project.mkdir(exist_ok=True)
    done = subprocess.run(
        [*COMMAND, *words],
        cwd=project,
        env={**computer.environment, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(not os.path.isdir(SHM), reason="there is no file system in memory")
def test_a_data_folder_in_memory_is_named_with_the_cure(computer: Computer) -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        home = f"{folder}/limpet"
        sentence = f"{home} does not last: it is in memory (tmpfs at {SHM}). Point LIMPET_HOME at a volume."
        assert sentence in said(computer, "doctor", LIMPET_HOME=home)
        assert sentence in said(computer, "status", LIMPET_HOME=home)
        assert sentence in json.loads(said(computer, "status", "--json", LIMPET_HOME=home))["remarks"]
        elsewhere = f"{computer.folder}/elsewhere.db"
        said(computer, "init", "--store", elsewhere, LIMPET_HOME=home)
        assert "does not last" not in said(computer, "doctor", "--store", elsewhere, LIMPET_HOME=home)


@pytest.mark.parametrize("name", ["CODESPACES", "CI", "GITPOD_WORKSPACE_ID"])
def test_a_machine_that_is_made_anew_is_named(computer: Computer, name: str) -> None:
    shown = said(computer, "doctor", **{name: "true"})
    assert "does not last: " in shown
    assert (f"({name} is set)" in shown) or IN_CONTAINER
    assert "Point LIMPET_HOME at a volume." in shown


@pytest.mark.parametrize(
    ("data", "mounts", "container", "machine", "named", "why"),
    [
        ("/home/ana/limpet", ROOT, "", "", False, ""),
        ("/home/ana/limpet", ROOT, "/.dockerenv", "", False, "it is in a container (/.dockerenv) and on no volume"),
        ("/home/ana/limpet", ROOT, "/.dockerenv", "", True, "it is in a container (/.dockerenv) and on no volume"),
        ("/home/ana/limpet", LAYER, "", "", False, "it is in the container's own layer (overlay at /)"),
        ("/home/ana/limpet", ROOT, "", "CI", False, "this machine is made anew (CI is set)"),
        ("/home/ana/limpet", ROOT, "", "CI", True, ""),
        ("/data of ana/limpet", LAYER + VOLUME, "/.dockerenv", "CODESPACES", True, ""),
        ("/data of ana", LAYER + VOLUME, "/.dockerenv", "", True, ""),
        ("/data of anabel", ROOT + VOLUME, "", "CI", False, "this machine is made anew (CI is set)"),
        (f"{SHM}/x", ROOT + MEMORY, "", "", True, "it is in memory (tmpfs at /dev/shm)"),
        ("/home/ana/limpet", "nonsense\n\n", "", "", False, ""),
    ],
)
def test_what_lasts_and_what_does_not(
    data: str, mounts: str, container: str, machine: str, named: bool, why: str
) -> None:
    assert judged(data, mounts, container, machine, named=named) == why


def test_a_volume_is_believed(tmp_path: Path) -> None:
    """The mounts of the machine that runs this, with one more for the data folder."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8") + f"99 1 8:1 / {tmp_path} rw - ext4 /dev/sdb rw\n"
    assert judged(str(tmp_path / "limpet"), mounts, "/.dockerenv", "CI", named=True) == ""
