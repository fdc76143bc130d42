# SPDX-License-Identifier: Apache-2.0
"""The source tree as the checks see it, and how they report."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

CPP_SUFFIXES = {".cc", ".h"}

# A check takes the root of the tree and yields one line per complaint.
Check = Callable[[Path], Iterator[str]]


def files(root: Path) -> list[Path]:
    """Every file of ours, relative to root, sorted: neither build output nor installed packages."""
    found = []
    for folder, subfolders, names in os.walk(root):
        here = Path(folder).relative_to(root)
        subfolders[:] = [
            name
            for name in subfolders
            if name not in {"node_modules", "__pycache__"}
            and not (here == Path(".") and name == "build")
            and (not name.startswith(".") or name == ".ci")
        ]
        found += [here / name for name in names]
    return sorted(found)


def cpp_files(root: Path) -> list[Path]:
    return [path for path in files(root) if path.suffix in CPP_SUFFIXES]


def sources(root: Path) -> list[Path]:
    """The C++ files under src/, relative to src/."""
    return cpp_files(root / "src")


def folders(root: Path) -> list[str]:
    """The folders of src/."""
    return sorted(path.name for path in (root / "src").iterdir() if path.is_dir())


def libraries(root: Path) -> list[str]:
    """The folders of src/libs/."""
    libs = root / "src/libs"
    return sorted(path.name for path in libs.iterdir() if path.is_dir()) if libs.is_dir() else []


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def main(title: str, check: Check) -> None:
    """Runs one check from the command line: one line per complaint, exit status 1 if there are any."""
    parser = argparse.ArgumentParser(description=title)
    default = Path(__file__).resolve().parents[2]
    parser.add_argument("--root", type=Path, default=default, help="the tree to look at")
    complaints = list(check(parser.parse_args().root))
    for complaint in complaints:
        print(complaint)
    print(f"{title}: {f'{len(complaints)} to mend' if complaints else 'ok'}")
    sys.exit(1 if complaints else 0)
