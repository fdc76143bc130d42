#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file has its unit test and begins with its header; each folder and library has its README."""

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import check_layers
import tree

EXCEPTIONS = Path("tests/lint/unpaired.txt")
README_LIMIT = 40


def exceptions(root: Path) -> dict[str, str]:
    """Pattern → reason, from lines `pattern  reason`."""
    path = root / EXCEPTIONS
    if not path.exists():
        return {}
    entries = [line.split(maxsplit=1) for line in tree.lines(path)]
    return {
        entry[0]: entry[1] if len(entry) > 1 else ""
        for entry in entries
        if entry and not entry[0].startswith("#")
    }


def has_test(root: Path, source: Path) -> bool:
    return (root / "tests/unit" / source.parent / f"{source.stem}_test.cc").exists()


def check_own_header(root: Path, source: Path) -> Iterator[str]:
    """What begins with its header shows that the header compiles by itself (cmake/headers.cmake)."""
    if source.suffix != ".cc" or not (root / "src" / source).with_suffix(".h").exists():
        return
    own = source.with_suffix(".h").as_posix()
    first = next((line for line in tree.lines(root / "src" / source) if check_layers.INCLUDE.match(line)), "")
    if f'"{own}"' not in first:
        yield f'src/{source}: does not begin with #include "{own}"'


def check(root: Path) -> Iterator[str]:
    excused = exceptions(root)
    for pattern, reason in excused.items():
        if not reason:
            yield f"{EXCEPTIONS}: {pattern} needs a reason on the same line"
        # A pattern may speak of files to come; a single file's excuse must still be needed.
        if "*" not in pattern and not (root / "src" / pattern).exists():
            yield f"{EXCEPTIONS}: src/{pattern} does not exist"
        elif "*" not in pattern and has_test(root, Path(pattern)):
            yield f"{EXCEPTIONS}: {pattern} has a test now and needs no excuse"
    for source in tree.sources(root):
        yield from check_own_header(root, source)
        if source.suffix != ".cc" or has_test(root, source):
            continue
        if not any(fnmatch(source.as_posix(), pattern) for pattern in excused):
            test = f"tests/unit/{source.parent}/{source.stem}_test.cc"
            yield f"src/{source}: lacks {test}, or a reason in {EXCEPTIONS}"
    libraries = [f"libs/{library}" for library in tree.libraries(root)]
    for folder in check_layers.modules(root) + libraries:
        readme = root / "src" / folder / "README.md"
        if not readme.exists():
            yield f"src/{folder}: lacks a README.md"
        elif (length := len(tree.lines(readme))) > README_LIMIT:
            yield f"src/{folder}/README.md: {length} lines, at most {README_LIMIT}"


if __name__ == "__main__":
    tree.main("pairs", check)
