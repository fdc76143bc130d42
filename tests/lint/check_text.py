#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every text file keeps: a licence line, clean white space, plain words, nothing of one machine."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import tree

SOURCE_SUFFIXES = tree.CPP_SUFFIXES | {".py", ".js", ".mjs", ".css", ".cmake", ".sh"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".html", ".json", ".yaml", ".yml", ".txt", ".cfg", ".conf"}
# Samples of foreign bytes are kept as they came.
FOREIGN = ("tests/fuzz/corpus/",)

LICENCE = "SPDX-License-Identifier: Apache-2.0"
COPYRIGHT = "SPDX-FileCopyrightText: The Baton authors"

# Written so that no pattern matches its own text.
UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w.~})-])/(?:work|home|root)/"),
    "a note to self; make it an issue": re.compile(r"\b(?:TO[D]O|FIX[M]E)\b"),
    "the host of a package registry": re.compile(r"\b(?:registry\.npm|pypi\.org|crates\.io\b)"),
}

# Pictures that the field's words have replaced; plain words of engines and protocols are not among them.
OLD_TYPES = (
    "Awaited Bell Blame BusyLine CacheWatch Choosy Circumstances Entrance Followers Gate Guest Inlet Lane LoadBell "
    "Manner Occasion Pack Patience Patient Seat SeatLoad SideBySide StreamJudge Stretches Tournament Trail TruthMeter "
    "Verdict Vitals Weighing Wish"
)
OLD_TYPE = re.compile(rf"\b(?:class|struct|enum|using|concept) ({OLD_TYPES.replace(' ', '|')})\b(?!::)")
# A sentence is about a request, a worker or a client.
SUBJECT = re.compile(r"(?:^|[.:;!?*|#/-] )(Who[e]ver|No[b]ody|Some[b]ody|Every[b]ody|Any[b]ody) ")

# Tests run beside one another: two that write to one file break each other now and then.
SHARED_PATH = re.compile(r"\b(?:TempDir\(\)|temp_directory_path\(|mkdtemp\()")
OWN_DIRECTORY = "tests/support/temporary_directory.h"


def is_script(path: Path) -> bool:
    if path.suffix:
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def check_header(path: Path, lines: list[str]) -> Iterator[str]:
    body = lines[1:] if lines and lines[0].startswith("#!") else lines
    if not body or LICENCE not in body[0]:
        yield f"{path}:1: lacks the line '{LICENCE}'"
    elif path.suffix in tree.CPP_SUFFIXES and (len(body) < 2 or COPYRIGHT not in body[1]):
        yield f"{path}:2: lacks the line '{COPYRIGHT}'"


def check_lines(path: Path, lines: list[str]) -> Iterator[str]:
    is_cpp_test = (
        path.suffix in tree.CPP_SUFFIXES
        and path.parts[0] == "tests"
        and path.as_posix() != OWN_DIRECTORY
    )
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield f"{path}:{number}: white space at the end"
        if path.suffix in tree.CPP_SUFFIXES and "\t" in line:
            yield f"{path}:{number}: a tab"
        for what, pattern in UNWANTED.items():
            if pattern.search(line):
                yield f"{path}:{number}: {what}"
        if path.suffix in tree.CPP_SUFFIXES and (old := OLD_TYPE.search(line)):
            yield f"{path}:{number}: {old[1]} is no word of the field; docs/glossary.md has those"
        if vague := SUBJECT.search(line):
            yield f"{path}:{number}: name the request, worker or client instead of '{vague[1]}'"
        if is_cpp_test and SHARED_PATH.search(line):
            yield f"{path}:{number}: files of a test belong in a TemporaryDirectory ({OWN_DIRECTORY})"


def check_lock(root: Path, path: Path) -> Iterator[str]:
    """npm's lock file must not say where packages were fetched from: that is for npm's settings."""
    packages = json.loads((root / path).read_text(encoding="utf-8")).get("packages", {})
    for name, package in packages.items():
        if "resolved" in package:
            yield f"{path}: {name} is tied to one registry; see CONTRIBUTING.md"


def check(root: Path) -> Iterator[str]:
    for path in tree.files(root):
        if path.as_posix().startswith(FOREIGN):
            continue
        is_source = (
            path.suffix in SOURCE_SUFFIXES
            or path.name == "CMakeLists.txt"
            or is_script(root / path)
        )
        if not is_source and path.suffix not in TEXT_SUFFIXES:
            continue
        lines = tree.lines(root / path)
        if is_source:
            yield from check_header(path, lines)
        yield from check_lines(path, lines)
        if path.name == "package-lock.json":
            yield from check_lock(root, path)


if __name__ == "__main__":
    tree.main("text", check)
