#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths, links and names of tests in the documents lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import tree

CHECKED_ROOTS = ("src/", "docs/", "tests/", "bench/", "cmake/")
PLACEHOLDER = re.compile(r"[<>{}$…]|\bNAME\b")
CODE_SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")
UNIT_TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", re.MULTILINE)
TEST_NAME = re.compile(r"[A-Z]\w+\.[A-Z]\w+")


def documents(root: Path) -> list[Path]:
    pages = [root / "README.md", root / "CONTRIBUTING.md"]
    pages += sorted((root / "docs").rglob("*.md"))
    pages += sorted((root / "src").rglob("README.md"))
    return [page for page in pages if page.exists()]


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines outside fenced blocks."""
    fenced = False
    for number, line in enumerate(tree.lines(page), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield number, line


def path_exists(root: Path, word: str) -> bool:
    name = re.sub(r"(:\d+)?[.,;:]*$", "", word.removeprefix("./"))
    if "*" in name:
        return any(root.glob(name))
    return (root / name).exists()


def anchors(page: Path) -> set[str]:
    """The anchors GitHub gives to a page's headings."""
    headings = [line.lstrip("#") for _, line in prose(page) if re.match(r"#+ ", line)]
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


def check_link(page: Path, target: str) -> str | None:
    if ELSEWHERE.match(target):
        return None
    name, _, anchor = target.partition("#")
    goal = page.parent / name if name else page
    if not goal.exists():
        return f"the link to {target} leads nowhere"
    if anchor and goal.suffix == ".md" and anchor not in anchors(goal):
        return f"{goal.name} has no heading for #{anchor}"
    return None


def unit_tests(root: Path) -> set[str]:
    """Suite.Name of every unit test."""
    found: set[str] = set()
    for path in (root / "tests/unit").rglob("*_test.cc"):
        text = path.read_text(encoding="utf-8")
        found |= {f"{suite}.{name}" for suite, name in UNIT_TEST.findall(text)}
    return found


def check(root: Path) -> Iterator[str]:
    tests = unit_tests(root)
    for page in documents(root):
        for number, line in prose(page):
            place = f"{page.relative_to(root)}:{number}"
            for word in " ".join(CODE_SPAN.findall(line)).split():
                if not word.removeprefix("./").startswith(CHECKED_ROOTS) or PLACEHOLDER.search(word):
                    continue
                if not path_exists(root, word):
                    yield f"{place}: {word} does not exist"
            for span in CODE_SPAN.findall(line):
                if TEST_NAME.fullmatch(span) and span not in tests:
                    yield f"{place}: there is no test {span}"
            for target in LINK.findall(CODE_SPAN.sub("", line)):
                complaint = check_link(page, target)
                if complaint:
                    yield f"{place}: {complaint}"


if __name__ == "__main__":
    tree.main("docs", check)
