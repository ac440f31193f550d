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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from torture.child import mixed
from torture.kit import Outcome, Tally, acknowledged, child, command, opened, surroundings, verify
from torture.lanes import Forked, Made, Share, in_memory, judged, spread

SHUTDOWN, NOLOGFLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN: forget whatever is not on the disk
CALLS = ("pwrite64", "fdatasync", "fsync", "ftruncate", "renameat2,rename", "unlink")
OF_THE_STORE = {"pwrite64", "fdatasync", "ftruncate"}  # Python uses these on nothing of ours
IMAGE_BYTES = 48 << 20
MKFS = shutil.which("mkfs.ext4") or shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
FAULTS = {"SIGKILL": "signal=SIGKILL", "ENOSPC": "error=ENOSPC", "EIO": "error=EIO"}
Look = Callable[..., None]  # what `verify` does: store, lines, tally, and whether to check all of it
# A case: on this store, with this number and this chance, start a writer and cut it off; what it had said.
Cut = Callable[
    [Path, int, random.Random, Callable[[Forked], list[tuple[str, ...]]]],
    list[tuple[str, ...]],
]


# --- full -------------------------------------------------------------------------------------------------------------


def limited(folder: Path, sizes: int) -> Outcome:
    """Files that may not grow beyond some size, each a little more than the last."""
    tally, refusals = Tally(), 0
    for number in range(sizes):
        home = folder / str(number)
        home.mkdir()
        process = child("full", home / "limpet.db", 4_096 * (1 + number * max(1, 150 // sizes)))
        out, err = process.communicate(timeout=300)
        if process.returncode or err:
            tally.miss("crashed", err.decode()[-300:])
        lines = acknowledged(out)
        refusals += sum(line[0] == "refused" for line in lines)
        verify(home / "limpet.db", [line for line in lines if line[0] != "refused"], tally)
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
            process = child("full", disk / "limpet.db", 0)
            out, err = process.communicate(timeout=300)
            if process.returncode or err:
                tally.miss("crashed", err.decode()[-300:])
            lines = acknowledged(out)
            codes = {line[1] for line in lines if line[0] == "refused"}
            refusals += sum(line[0] == "refused" for line in lines)
            if codes - {"store_full"}:
                tally.miss("not named", f"{size} KiB: {', '.join(codes)}")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True, capture_output=True)
            verify(disk / "limpet.db", [line for line in lines if line[0] != "refused"], tally)
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
        for _ in range(50):  # somebody else on this machine may be looking around
            if not subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(f"{place} cannot be unmounted")


# --- system calls -----------------------------------------------------------------------------------------------------


def system_calls(folder: Path, points: int) -> Outcome:
    """The first, second, third … call of each kind fails, until one is never reached. `points` bounds how many."""
    strace = shutil.which("strace")
    if strace is None:
        return Outcome("none", "none", skipped="strace is not installed")
    tally, done = Tally(), 0
    base = folder / "base"
    base.mkdir()
    with opened(base / "limpet.db", "step") as hold:
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
    watched = ("limpet.db", "limpet.db-wal", "limpet.db-shm")
    paths = [word for name in watched for word in ("-P", str(home / name))] if call in OF_THE_STORE else []
    inject = f"inject={call}:{FAULTS[fault]}:when={number}"
    run = [strace, "-f", "-qq", "-o", str(seen), *paths, "-e", f"trace={call}", "-e", inject]
    process = subprocess.Popen(
        [*run, *command("step", home / "limpet.db")],
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
    verify(home / "limpet.db", said, tally)
    if sum(tally.counts.values()) > before:
        tally.miss("faults that did harm", f"{fault} at {call} {number}")
    return True


# --- power ------------------------------------------------------------------------------------------------------------


def power(folder: Path, cuts: int) -> Outcome:
    """Power cuts on file systems of their own: whatever was not synced is gone."""
    return cut_off(folder, cuts, _mixed)


def cut_off(folder: Path, cuts: int, one: Cut, *, look: Look = verify, homes: int = 10) -> Outcome:
    """Cut the power so often; each store lives through `homes` cuts."""
    if MKFS is None:
        return Outcome("none", "none", skipped="mkfs.ext4 is not installed")
    with in_memory(folder) as memory:
        with mounted(memory, ["-t", "tmpfs", "none"]) as may:
            if may is None:
                return Outcome("none", "none", skipped="mounting is not allowed here")
        tally, numbers = spread(partial(_cuts, one, look, homes), memory, cuts, most=cuts)
    return tally.outcome(f"{numbers['cuts']:,} cuts, {numbers['acknowledged']:,} acknowledged", "lost", "corrupt")


def _cuts(one: Cut, look: Look, homes: int, share: Share) -> Made:
    """One file system, and cut after cut on it. What the next writer begins with is what the last cut left."""
    image, chance, tally = share.folder / "image", random.Random(share.seed), Tally()
    numbers = {"cuts": 0, "acknowledged": 0}
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run([str(MKFS), "-q", "-E", "lazy_itable_init=0", str(image)], check=True, capture_output=True)
    options = ["-o", "loop,commit=60", str(image)]
    lines: list[tuple[str, ...]] = []
    for number in range(share.cases):
        with mounted(share.folder, options) as disk:
            assert disk is not None
            home = disk / f"{number // homes}"
            if number % homes == 0:
                shutil.rmtree(disk / f"{number // homes - 1}", ignore_errors=True)
                home.mkdir()
                synced(disk)  # the folder itself is not ours to keep
                lines = []
            fresh = one(home / "limpet.db", number, chance, partial(shut_down, disk))
        lines += fresh
        numbers["cuts"] += 1
        numbers["acknowledged"] += len(fresh)
        with mounted(share.folder, options) as disk:
            assert disk is not None
            last = number % homes == homes - 1 or number == share.cases - 1
            store = disk / f"{number // homes}" / "limpet.db"
            judged(partial(look, store, lines if last else fresh, check=last or number % 5 == 4), tally)
            synced(disk)  # so that a cut takes nothing but what the next writer did
        if sum(tally.counts.values()) > 100:
            break
    return Made(tally.counts, tally.words, numbers)


def synced(disk: Path) -> None:
    """This file system alone: others on this machine have disks of their own."""
    subprocess.run(["sync", "-f", str(disk)], check=True, capture_output=True)


def shut_down(disk: Path, writer: Forked) -> list[tuple[str, ...]]:
    """Stop the writer first: a sync that races the cut would be acknowledged in good faith."""
    with suppress(ProcessLookupError):
        os.kill(writer.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    handle = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NOLOGFLUSH))
    os.close(handle)
    said, _ = writer.end(signal.SIGKILL)
    return acknowledged(said)


def _mixed(
    store: Path, number: int, chance: random.Random, cut: Callable[[Forked], list[tuple[str, ...]]]
) -> list[tuple[str, ...]]:
    """The power goes right after something was acknowledged; soon after something was; at any moment from the start."""
    led = number % 3 == 0
    writer = Forked(partial(mixed, str(store), f"cut{number}", "led" if led else ""))
    if led:
        for _ in range(chance.randrange(1, 8)):
            writer.line()
            writer.go()
        writer.line()
    else:
        if number % 3 == 1:
            writer.line()
        time.sleep(chance.uniform(0.0, 0.060))
    return cut(writer)
