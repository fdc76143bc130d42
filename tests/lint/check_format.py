#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C++ files are formatted as .clang-format says; --fix makes it so."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import tree

CLANG_FORMAT = "clang-format-19"


def run(root: Path, *options: str) -> subprocess.CompletedProcess:
    names = [path.as_posix() for path in tree.cpp_files(root)]
    if not names:  # without a file clang-format reads standard input
        return subprocess.CompletedProcess([], 0, "", "")
    command = [CLANG_FORMAT, *options, *names]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def check(root: Path) -> Iterator[str]:
    result = run(root, "--dry-run", "-Werror")
    # One line per file is enough: nobody mends these by hand.
    places = re.findall(r"^(.+?:\d+):\d+: error: code should be", result.stderr, re.MULTILINE)
    for _, group in groupby(places, key=lambda place: place.rsplit(":", 1)[0]):
        yield f"{next(group)}: not as clang-format wants it; mend with ./dev format"
    if result.returncode != 0 and not places:
        yield result.stderr.rstrip()


def fix(root: Path) -> Iterator[str]:
    result = run(root, "-i")
    if result.returncode != 0:
        yield result.stderr.rstrip()


if __name__ == "__main__":
    fixing = "--fix" in sys.argv
    if fixing:
        sys.argv.remove("--fix")
    tree.main("format", fix if fixing else check)
