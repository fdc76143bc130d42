#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file includes its own folder and strictly lower layers; pure folders know no sockets."""

import re
from collections.abc import Iterator
from pathlib import Path

import tree

# The same table stands in docs/architecture.md, and the two are compared. A nested folder with a line
# of its own is a module of its own; others belong to the folder above them. Modules of one layer do not
# see each other. `pipeline` stands above `handoff` because the spine calls the hand-off.
LAYERS = {
    "cli": 12,
    "app": 11,
    "api": 10,
    "http": 9,
    "pipeline": 8,
    "handoff": 7,
    "scheduling": 6,
    "kvcache/view": 6,
    "fleet/monitor": 6,
    "fleet": 5,
    "engine": 4,
    "scheduling/queue": 4,
    "kvcache/events": 4,
    "etcd": 4,
    "scheduling/policy": 3,
    "kvcache/index": 3,
    "prompt": 3,
    "http_client": 3,
    "config": 2,
    "telemetry": 2,
    "wire": 2,
    "net": 2,
    "model": 1,
    "core": 0,
    "libs": -1,
}

# The libraries of src/libs: each includes itself and these, but nothing of Baton's layers.
LIBRARIES = {
    "scan": set(),
    "jinja": {"scan"},
    "tokenizer": {"base64", "locks", "memory", "scan"},
    "locks": set(),
    "base64": set(),
    "memory": set(),
}

# Modules beside the layers: the highest layer they may include, and who may include them.
BESIDE = {
    "tools/sim": (3, {"cli"}),  # a server of its own; only the command line starts it
    "tools/loadgen": (3, {"cli"}),  # the router knows nothing of it
    "tools/sidecar": (4, {"cli"}),  # the life of one engine in etcd
}

# Pure: no Asio, no sockets; what happens there can be tested without either.
PURE = {
    "prompt",
    "scheduling/policy",
    "kvcache/index",
    "wire",
    "model",
    "config",
    "core",
    "libs",
}
IMPURE_INCLUDES = ("boost/asio", "boost/beast", "sys/socket.h", "sys/epoll.h", "netinet/")
PURE_EXCEPT = {
    "core/asio": "compiles Asio, once for all",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TABLE_ROW = re.compile(r"^\|\s*([^|]+?)\s*\|([^|]*)\|")
FOLDER_NAME = re.compile(r"`(?:src/)?(\w+(?:/\w+)*)/?`")


def module_of(path: str) -> str | None:
    """The module that a path below src/ belongs to: the longest folder of the tables above it."""
    parts = path.split("/")[:-1]
    while parts:
        folder = "/".join(parts)
        if folder in LAYERS or folder in BESIDE:
            return folder
        parts.pop()
    return None


def may_include(user: str, used: str) -> bool:
    if user == used:
        return True
    if used in BESIDE:
        return user in BESIDE[used][1]
    if user in BESIDE:
        return LAYERS[used] <= BESIDE[user][0]
    return LAYERS[used] < LAYERS[user]


def may_include_library(user: str, used: str) -> bool:
    return user == used or used in LIBRARIES.get(user, set())


def check_include(path: Path, mark: str, target: str) -> str | None:
    user = module_of(path.as_posix())
    if user is None:
        return None  # check() says so, once for the folder
    if mark == "<":
        pure = user in PURE and path.with_suffix("").as_posix() not in PURE_EXCEPT
        if pure and target.startswith(IMPURE_INCLUDES):
            return f"{user} is pure and must not include <{target}>"
        return None
    used = module_of(target)
    if used is None:
        return f'"{target}" is not of the form "folder/file.h" with a folder of the layer table'
    if not may_include(user, used):
        return f"{user} must not include {used}"
    if user == "libs" and not may_include_library(path.parts[1], target.split("/")[1]):
        return f"the library {path.parts[1]} must not include {target}"
    return None


def linked_module(name: str) -> str | None:
    """The module behind a library's name in CMake, without its `baton_`."""
    if name.startswith("libs_"):
        return "libs"
    modules = {module.replace("/", "_"): module for module in (*LAYERS, *BESIDE)}
    return modules.get(name)


def check_links(root: Path) -> Iterator[str]:
    """What a module links is held to the same rule as what it includes."""
    for path in sorted((root / "src").rglob("CMakeLists.txt")):
        place = path.relative_to(root)
        user = module_of(path.relative_to(root / "src").as_posix())
        if user is None:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            for name in re.findall(r"\bbaton_(\w+)", line.split("#")[0]):
                used = linked_module(name)
                if used is None:
                    continue
                if not may_include(user, used):
                    yield f"{place}:{number}: {user} must not link {used}"
                elif user == "libs":
                    library = name.split("_")[1]
                    if not may_include_library(place.parts[2], library):
                        yield f"{place}:{number}: the library {place.parts[2]} must not link {name}"


def documented_layers(page: Path) -> dict[str, str]:
    """Folder → layer, from the table whose first column is headed `layer`."""
    found: dict[str, str] = {}
    inside = False
    for line in tree.lines(page):
        row = TABLE_ROW.match(line)
        if not row:
            inside = False
        elif row[1].lower() == "layer":
            inside = True
        elif inside:
            found |= {folder: row[1] for folder in FOLDER_NAME.findall(row[2])}
    return found


def check_page(root: Path) -> Iterator[str]:
    page = root / "docs/architecture.md"
    if not page.exists():
        return
    documented = documented_layers(page)
    for module in modules(root):
        if module not in documented:
            yield f"docs/architecture.md: the layer table lacks `{module}/`"
    for folder, layer in documented.items():
        ours = "beside" if folder in BESIDE else str(LAYERS.get(folder, "unknown"))
        theirs = layer if layer.lstrip("-").isdigit() else "beside"
        if theirs != ours:
            yield f"docs/architecture.md: `{folder}/` stands at {theirs}, in check_layers.py at {ours}"


def modules(root: Path) -> list[str]:
    """The modules that have files."""
    return sorted({module for path in tree.sources(root) if (module := module_of(path.as_posix()))})


def check(root: Path) -> Iterator[str]:
    homeless = {path.parent for path in tree.sources(root) if module_of(path.as_posix()) is None}
    for folder in sorted(homeless):
        yield f"src/{folder}: has no layer; give it one in check_layers.py and docs/architecture.md"
    yield from check_links(root)
    for library in tree.libraries(root):
        if library not in LIBRARIES:
            yield f"src/libs/{library}: is not in LIBRARIES of check_layers.py"
    for path in tree.sources(root):
        for number, line in enumerate(tree.lines(root / "src" / path), 1):
            include = INCLUDE.match(line)
            complaint = check_include(path, *include.groups()) if include else None
            if complaint:
                yield f"src/{path}:{number}: {complaint}"
    yield from check_page(root)


if __name__ == "__main__":
    tree.main("layers", check)
