#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Locks are those of libs/locks, which the compiler's thread safety analysis knows."""

import re
from collections.abc import Iterator
from pathlib import Path

import tree

HOME = "libs/locks"

# std::call_once and atomics have nothing to forget.
RAW = re.compile(
    r"\bstd::((?:recursive_|timed_|recursive_timed_|shared_|shared_timed_)?mutex|lock_guard|unique_lock"
    r"|scoped_lock|shared_lock|condition_variable(?:_any)?)\b"
)
LOCK = re.compile(r"\b(?:Mutex|SharedMutex|FairLock) (\w+);(.*)")
GUARDED = r"GUARDED_BY\([^)]*\b{}\b"
UNCHECKED = re.compile(r"\bNO_THREAD_SAFETY_ANALYSIS\b(.*)")


def check(root: Path) -> Iterator[str]:
    for path in tree.sources(root):
        if path.parent.as_posix() == HOME:
            continue
        lines = tree.lines(root / "src" / path)
        text = "\n".join(lines)
        for number, line in enumerate(lines, 1):
            place = f"src/{path}:{number}"
            if raw := RAW.search(line.split("//")[0]):
                yield f"{place}: std::{raw[1]} is unknown to the analysis; use src/{HOME}/mutex.h"
            lock = LOCK.search(line)
            if lock and not re.search(GUARDED.format(lock[1]), text) and "//" not in lock[2]:
                yield f"{place}: no member is GUARDED_BY({lock[1]}); state in a comment what it is for"
            if (unchecked := UNCHECKED.search(line)) and "//" not in unchecked[1]:
                yield f"{place}: NO_THREAD_SAFETY_ANALYSIS needs its reason in a comment on the line"


if __name__ == "__main__":
    tree.main("locks", check)
