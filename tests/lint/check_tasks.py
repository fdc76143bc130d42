#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A spawned coroutine takes its parameters by value, or what it refers to is known to outlive it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree

# co_spawn is behind these doors only: they count their tasks and report what those throw.
DOORS = {"net/task_group.h", "tools/sim/task.cc"}

# Services that live longer than any task that is given them.
SERVICES = {
    "http_client::UpstreamPool": "of an I/O thread or the control thread, which waits for its tasks",
    "ModelMetrics": "of the request ledger, from which nothing is taken",
    "EngineCore": "of a simulated server, which ends with its threads",
    "Acceptor": "of a simulated server, likewise",
}
# For other references, in the comment above the spawn: the names of the parameters.
VOUCHED = re.compile(r"//\s*Outlives? the task: ([\w, ]+)")

AWAITABLE = re.compile(r"\bawaitable<")
CALLEE = re.compile(r"\s*(?:\w+::)*(\w+)\s*\(")
NAMED_LAMBDA = re.compile(r"\b(\w+)\s*=\s*\[[^\]]*\]\s*(\()")
RETURNS_AWAITABLE = re.compile(r"\s*(?:mutable\s*)?->\s*(?:\w+::)*awaitable<")
SPAWN = re.compile(r"(?<![\w:~])(?:[\w.]|->)*\bspawn\(")
CO_SPAWN = re.compile(r"\bco_spawn\(")
REFERENCE = re.compile(r"&|\bstring_view\b|\bspan<")
CALLED = re.compile(r"^(?:\w+(?:\.|->|::))*(\w+)\s*\(")
# An awaitable that is kept is awaited later, when what its coroutine refers to may be gone.
KEPT = re.compile(r"\s+(\w+)\s*(?:=|;|\{)")
LAMBDA = re.compile(r"^\[([^\]]*)\]\s*\(")

OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}


@dataclass(frozen=True)
class Coroutine:
    path: Path
    parameters: tuple[str, ...]


def without_literals(text: str) -> str:
    """The code with comments and literals blanked, each character at its place."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL,
    )
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def end_of(code: str, begin: int) -> int:
    """Behind the bracket that closes the one at `begin`."""
    opening, closing = code[begin], OPENING[code[begin]]
    depth = 0
    for at in range(begin, len(code)):
        if code[at] == opening:
            depth += 1
        elif code[at] == closing and code[at - 1] != "-":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(code)


def split(text: str) -> list[str]:
    """At the commas that are in no bracket."""
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[at - 1] != "-"):
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


def coroutines(path: Path, code: str) -> Iterator[tuple[str, Coroutine]]:
    """The functions and lambdas declared there that return an awaitable, by name."""
    for found in NAMED_LAMBDA.finditer(code):
        end = end_of(code, found.start(2))
        if RETURNS_AWAITABLE.match(code, end):
            yield found[1], Coroutine(path, tuple(split(code[found.end() : end - 1])))
    for found in AWAITABLE.finditer(code):
        callee = CALLEE.match(code, end_of(code, found.end() - 1))
        if callee:
            end = end_of(code, callee.end() - 1)
            yield callee[1], Coroutine(path, tuple(split(code[callee.end() : end - 1])))


def kept(code: str) -> Iterator[int]:
    """The places of the variables that hold an awaitable."""
    for found in AWAITABLE.finditer(code):
        if KEPT.match(code, end_of(code, found.end() - 1)):
            yield found.start()


def nearest(path: Path, found: list[Coroutine]) -> list[Coroutine]:
    """Those the call may mean: of the same file and its header, else of the folder, else any."""
    for near in (
        lambda other: other.with_suffix("") == path.with_suffix(""),
        lambda other: other.parent == path.parent,
        lambda other: True,
    ):
        chosen = [one for one in found if near(one.path)]
        if chosen:
            return chosen
    return []


def name_of(parameter: str) -> str:
    return re.split(r"\W+", parameter.split("=")[0].strip())[-1]


def is_service(parameter: str) -> bool:
    return any(re.search(rf"\b{service}&", parameter) for service in SERVICES)


def vouched_above(lines: list[str]) -> set[str]:
    """The names in the comment that ends these lines."""
    names: set[str] = set()
    for line in reversed(lines):
        if not line.strip().startswith("//"):
            break
        for found in VOUCHED.findall(line):
            names |= {name.strip() for name in found.split(",")}
    return names


def check_spawn(path: Path, code: str, text: str, begin: int, known) -> Iterator[str]:
    """`begin`: of the bracket behind spawn."""
    task = split(code[begin + 1 : end_of(code, begin) - 1])[-1]
    number = code.count("\n", 0, begin)
    vouched = vouched_above(text.splitlines()[:number])
    place = f"src/{path}:{number + 1}"
    if made := LAMBDA.match(task):
        if made[1]:
            yield f"{place}: a spawned lambda that captures is gone before its coroutine runs"
        parameters = split(task[made.end() : end_of(task, made.end() - 1) - 1])
        candidates = [Coroutine(path, tuple(parameters))]
    else:
        called = CALLED.match(task)
        candidates = nearest(path, known.get(called[1], [])) if called else []
        if called and not candidates:
            yield f"{place}: no coroutine {called[1]} is declared"
    for parameter in sorted({one for made in candidates for one in made.parameters}):
        if not REFERENCE.search(parameter) or is_service(parameter):
            continue
        if name_of(parameter) not in vouched:
            yield (
                f"{place}: the task gets `{' '.join(parameter.split())}`; pass a value, or state in a "
                f"comment above: `// Outlives the task: {name_of(parameter)}`"
            )


def check(root: Path) -> Iterator[str]:
    texts = {path: (root / "src" / path).read_text(encoding="utf-8") for path in tree.sources(root)}
    codes = {path: without_literals(text) for path, text in texts.items()}
    known: dict[str, list[Coroutine]] = {}
    for path, code in codes.items():
        for name, coroutine in coroutines(path, code):
            known.setdefault(name, []).append(coroutine)
    for path, code in codes.items():
        for begin in kept(code):
            number = code.count("\n", 0, begin) + 1
            yield f"src/{path}:{number}: an awaitable is awaited in the expression that makes it"
        if path.as_posix() not in DOORS:
            for found in CO_SPAWN.finditer(code):
                number = code.count("\n", 0, found.start()) + 1
                yield f"src/{path}:{number}: tasks are started with TaskGroup::spawn"
            for found in SPAWN.finditer(code):
                if not re.search(r"void\s*$", code[: found.start()]):
                    yield from check_spawn(path, code, texts[path], found.end() - 1, known)


if __name__ == "__main__":
    tree.main("tasks", check)
