#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shell scripts pass shellcheck."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import tree


def is_shell(path: Path) -> bool:
    if path.suffix == ".sh":
        return True
    with path.open("rb") as file:
        first = file.readline(100)
    return first.startswith(b"#!") and first.rstrip().endswith((b"bash", b"/sh"))


def check(root: Path) -> Iterator[str]:
    scripts = [path.as_posix() for path in tree.files(root) if is_shell(root / path)]
    if not scripts:
        return
    command = ["shellcheck", "--format=gcc", *scripts]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    yield from result.stdout.splitlines()
    yield from result.stderr.splitlines()


if __name__ == "__main__":
    tree.main("shell", check)
