"""Disks that are full, system calls that fail, and power that goes away."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torture.kit import SEED, Outcome, Tally, acknowledged, child, command, digest, judge, opened, sound, surroundings

SHUTDOWN, NOLOGFLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN: forget whatever is not on the disk
CALLS = ("pwrite64", "fdatasync", "fsync", "ftruncate", "renameat2,rename", "unlink")
OF_THE_STORE = {"pwrite64", "fdatasync", "ftruncate"}  # Python uses these on nothing of ours
FAULTS = {"SIGKILL": "signal=SIGKILL", "ENOSPC": "error=ENOSPC", "EIO": "error=EIO"}


def verify(store: Path, lines: list[tuple[str, ...]], tally: Tally, *, check: bool = True) -> None:
    """Everything a child said it had written is there."""
    with opened(store, "after") as hold:
        judge(hold, {id: wanted for kind, id, wanted in (line for line in lines if line[0] == "note")}, tally)
        for _, id, wanted in (line for line in lines if line[0] == "output"):
            found = hold.store.output(hold.scope, id)
            if found is None:
                tally.miss("lost", f"output {id}")
            elif digest(hold.store.output_bytes(hold.scope, id, 0, found.size)) != wanted:
                tally.miss("wrong", f"output {id}")
        journal = store.parent / "NOTES.md"
        text = journal.read_text(encoding="utf-8") if journal.exists() else ""
        for line in (line[1] for line in lines if line[0] == "line"):
            if f"{line.replace('_', ' ')}?" not in text:
                tally.miss("lost", f"{line} in the journal")
        if not text.strip() and journal.exists():
            tally.miss("corrupt", "the journal is empty")
        if check:
            sound(hold, tally)
        hold.session("after").notes.add("still writable")


# --- full -------------------------------------------------------------------------------------------------------------


def limited(folder: Path, sizes: int) -> Outcome:
    """Files that may not grow beyond some size, each a little more than the last."""
    tally, refusals = Tally(), 0
    for number in range(sizes):
        home = folder / str(number)
        home.mkdir()
        process = child("full", home / "holdfast.db", 4_096 * (1 + number * max(1, 150 // sizes)))
        out, err = process.communicate(timeout=300)
        if process.returncode or err:
            tally.miss("crashed", err.decode()[-300:])
        lines = acknowledged(out)
        refusals += sum(line[0] == "refused" for line in lines)
        verify(home / "holdfast.db", [line for line in lines if line[0] != "refused"], tally)
        shutil.rmtree(home)
    if sizes and not refusals:
        tally.miss("nothing refused")
    return tally.outcome(f"{sizes:,} sizes, {refusals:,} writes refused", "lost", "corrupt", "crashed")


def small_disk(folder: Path, sizes: int) -> Outcome:
    """A real file system that is full, and then has room again."""
    tally, refusals = Tally(), 0
    for number in range(sizes):
        size = 64 + 4 * number * max(1, 250 // sizes)
        with mounted(folder, ["-t", "tmpfs", "-o", f"size={size}k", "none"]) as disk:
            if disk is None:
                return Outcome("none", "none", skipped="mounting is not allowed here")
            process = child("full", disk / "holdfast.db", 0)
            out, err = process.communicate(timeout=300)
            if process.returncode or err:
                tally.miss("crashed", err.decode()[-300:])
            lines = acknowledged(out)
            codes = {line[1] for line in lines if line[0] == "refused"}
            refusals += sum(line[0] == "refused" for line in lines)
            if codes - {"store_full"}:
                tally.miss("not named", f"{size} KiB: {', '.join(codes)}")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True, capture_output=True)
            verify(disk / "holdfast.db", [line for line in lines if line[0] != "refused"], tally)
    return tally.outcome(f"{sizes:,} sizes, {refusals:,} writes refused", "lost", "corrupt", "not named", "crashed")


@contextmanager
def mounted(folder: Path, options: list[str]) -> Iterator[Path | None]:
    """None where this user may not mount anything."""
    place = folder / "disk"
    place.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, *options, str(place)], capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True, capture_output=True)


# --- system calls -----------------------------------------------------------------------------------------------------


def system_calls(folder: Path, points: int) -> Outcome:
    """The first, second, third … call of each kind fails, until one is never reached. `points` bounds how many."""
    strace = shutil.which("strace")
    if strace is None:
        return Outcome("none", "none", skipped="strace is not installed")
    tally, done = Tally(), 0
    base = folder / "base"
    base.mkdir()
    with opened(base / "holdfast.db", "step") as hold:
        hold.session().notes.add("before")
        hold.session().journal.init()
    kinds = [(call, fault) for fault in FAULTS for call in CALLS]
    open_ = dict.fromkeys(kinds, 1)
    skip = max(1, 400 // max(1, points))  # a small run takes points from everywhere, not only the first ones
    while open_ and done < points:
        for call, fault in list(open_):
            if done >= points:
                break
            if _fault(folder, strace, call, fault, open_[call, fault], tally):
                done += 1
                open_[call, fault] += skip
            else:
                del open_[call, fault]
    whole = "every point there is" if not open_ and skip == 1 else "a sample of the points"
    return tally.outcome(f"{done:,} faults in {len(CALLS)} kinds of calls, {whole}", "lost", "corrupt", "crashed")


def _fault(folder: Path, strace: str, call: str, fault: str, number: int, tally: Tally) -> bool:
    """One fault. False when the work ended before it was reached."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(folder / "base", home)
    seen = folder / "seen"
    seen.unlink(missing_ok=True)
    watched = ("holdfast.db", "holdfast.db-wal", "holdfast.db-shm")
    paths = [word for name in watched for word in ("-P", str(home / name))] if call in OF_THE_STORE else []
    inject = f"inject={call}:{FAULTS[fault]}:when={number}"
    run = [strace, "-f", "-qq", "-o", str(seen), *paths, "-e", f"trace={call}", "-e", inject]
    process = subprocess.Popen(
        [*run, *command("step", home / "holdfast.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings(),
    )
    out, err = process.communicate(timeout=300)
    traced = seen.read_text(errors="replace") if seen.exists() else ""
    if "INJECTED" not in traced and "killed by SIGKILL" not in traced:
        return False
    if b"Traceback" in err:
        tally.miss("crashed", f"{fault} at {call} {number}: {err.decode()[-200:]}")
    said = [line for line in acknowledged(out) if line[0] not in ("refused", "pad")]
    before = sum(tally.counts.values())
    verify(home / "holdfast.db", said, tally)
    if sum(tally.counts.values()) > before:
        tally.miss("faults that did harm", f"{fault} at {call} {number}")
    return True


# --- power ------------------------------------------------------------------------------------------------------------


def power(folder: Path, cuts: int) -> Outcome:
    """Power cuts on a file system of its own: whatever was not synced is gone."""
    image = folder / "image"
    with open(image, "wb") as file:
        file.truncate(96 * 1024 * 1024)
    mkfs = shutil.which("mkfs.ext4") or shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if mkfs is None:
        return Outcome("none", "none", skipped="mkfs.ext4 is not installed")
    subprocess.run([mkfs, "-q", "-E", "lazy_itable_init=0", str(image)], check=True, capture_output=True)
    chance, tally, told = random.Random(SEED), Tally(), 0
    options = ["-o", "loop,commit=60", str(image)]
    for number in range(cuts):
        with mounted(folder, options) as disk:
            if disk is None:
                return Outcome("none", "none", skipped="mounting is not allowed here")
            home = disk / f"{number // 10}"
            if not home.exists():
                shutil.rmtree(disk / f"{number // 10 - 1}", ignore_errors=True)
                home.mkdir()
                os.sync()  # the folder itself is not ours to keep
            lines = _cut(disk, home / "holdfast.db", number, chance)
        with mounted(folder, options) as disk:
            assert disk is not None
            told += len(lines)
            verify(disk / f"{number // 10}" / "holdfast.db", lines, tally, check=number % 5 == 4 or number == cuts - 1)
    return tally.outcome(f"{cuts:,} cuts, {told:,} acknowledged", "lost", "corrupt")


def _cut(disk: Path, store: Path, number: int, chance: random.Random) -> list[tuple[str, ...]]:
    """Every other time at leisure, so that the power goes right after something was acknowledged."""
    writer = child("mixed", store, f"cut{number}", 0.03 if number % 2 else 0)
    assert writer.stdout is not None
    first = b"".join(writer.stdout.readline() for _ in range(chance.randrange(1, 6)))
    time.sleep(chance.uniform(0.0, 0.06))
    writer.send_signal(signal.SIGSTOP)
    os.waitpid(writer.pid, os.WUNTRACED)
    handle = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NOLOGFLUSH))
    os.close(handle)
    writer.send_signal(signal.SIGKILL)
    rest, err = writer.communicate(timeout=60)
    assert first, err.decode()
    return acknowledged(first + rest)
