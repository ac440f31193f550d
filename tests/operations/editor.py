"""An editor that a person works in: `python editor.py STYLE FILE COUNT SEED`. Each save adds one line somewhere.

It reads the file, takes a while over it, and saves as real editors do. `saved N` is printed after each.
"""

from __future__ import annotations

import os
import random
import sys
import time

STYLES = ("truncate", "rename", "append", "backup")


def save(style: str, path: str, text: str, line: str) -> None:
    if style == "append":
        with open(path, "a", encoding="utf-8") as file:
            file.write(line)
    elif style == "truncate":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    elif style == "rename":
        with open(f"{path}.swp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.swp", path)
    else:
        os.rename(path, f"{path}~")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.unlink(f"{path}~")


def main() -> None:
    style, path, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)
    for number in range(count):
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        line = f"- by hand {style} {number}"
        # Below the last heading, where a person's own list is; never inside an entry.
        start = max(at for at, text in enumerate(lines) if text.startswith("## By hand")) + 1
        at = chance.randint(start, max(start, len(lines) - 1))
        lines.insert(at, line)
        time.sleep(chance.choice([0, 0, chance.random() * 0.05]))
        save(style, path, "\n".join(lines), f"{line}\n")
        print(f"saved {number}", flush=True)


if __name__ == "__main__":
    main()
