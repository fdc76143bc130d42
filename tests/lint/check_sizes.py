#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files stay small, and none is named so that anything may go into it."""

import re
from collections.abc import Iterator
from pathlib import Path

import tree

LIMITS = {".cc": 600, ".h": 300}
MAIN_LIMIT = 60
WARN_ABOVE = 400
VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "misc"}


def check(root: Path) -> Iterator[str]:
    for path in tree.sources(root):
        length = len(tree.lines(root / "src" / path))
        limit = MAIN_LIMIT if path.name == "main.cc" else LIMITS[path.suffix]
        if length > limit:
            yield f"src/{path}: {length} lines, at most {limit}"
        elif length > WARN_ABOVE:
            print(f"warning: src/{path}: {length} lines, better below {WARN_ABOVE}")
    for path in tree.files(root / "src"):
        vague = VAGUE & set(re.split(r"[^a-z]+", path.as_posix().lower()))
        if vague:
            yield f"src/{path}: '{vague.pop()}' in a name says nothing about what is inside"


if __name__ == "__main__":
    tree.main("sizes", check)
