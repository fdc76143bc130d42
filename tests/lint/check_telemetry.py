#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages on metrics and logs name exactly what the code writes."""

import re
from collections.abc import Iterator
from pathlib import Path

import tree

METRICS_PAGE = Path("docs/metrics.md")
LOGS_PAGE = Path("docs/logging.md")

# A collected metric is one whose series are written at each scrape, by the function that follows.
METRIC = re.compile(
    r'\b(counter|gauge|share|histogram|collect|collect_counts|held_counter|held_share)\(\s*"(baton_\w+)"'
)
TYPES = {
    "collect": "gauge",
    "collect_counts": "counter",
    "held_counter": "counter",
    "held_share": "gauge",
    "share": "gauge",
}
LOG_CALL = re.compile(r'\blog_?(?:\.|->)(debug|info|warning|error)\(\s*"(\w+)",(.*?)\);', re.DOTALL)
# The level is decided at run time: every Level named before the event.
LOG_WRITE = re.compile(r'\blog_?(?:\.|->)write\(\s*([^"]*?),\s*"(\w+)",(.*?)\);', re.DOTALL)
LEVEL = re.compile(r"Level::(\w+)")
# {"name", value} or {{"name", value}, …: a label of a metric, a field of a line.
NAMED = re.compile(r'\{"(\w+)",')
CODE_SPAN = re.compile(r"`([^`]+)`")

# Fields of `request` have a table of their own.
REQUEST = "request"

# Name → type and labels of a metric, level and fields of an event.
Entries = dict[str, tuple[str, frozenset[str]]]


def router_sources(root: Path) -> Iterator[str]:
    """The simulator is left out: it has the metrics of the engines it stands for."""
    for path in tree.sources(root):
        if path.parts[:2] != ("tools", "sim"):
            yield (root / "src" / path).read_text(encoding="utf-8")


def written_metrics(root: Path) -> Entries:
    found: Entries = {}
    for text in router_sources(root):
        matches = list(METRIC.finditer(text))
        ends = [match.start() for match in matches[1:]] + [len(text)]
        for match, end in zip(matches, ends):
            collected = match[1].startswith("collect")
            statement = text[match.end() : end].split("\n}\n" if collected else ";")[0]
            found[match[2]] = (TYPES.get(match[1], match[1]), frozenset(NAMED.findall(statement)))
    return found


def written_events(root: Path) -> Entries:
    found: Entries = {}
    for text in router_sources(root):
        for call in LOG_CALL.finditer(text):
            found[call[2]] = (call[1], frozenset(NAMED.findall(call[3])))
        for call in LOG_WRITE.finditer(text):
            levels = " or ".join(sorted(level.lower() for level in LEVEL.findall(call[1])))
            found[call[2]] = (levels, frozenset(NAMED.findall(call[3])))
    return found


def table(page: Path, first_column: str) -> list[list[str]]:
    """The rows of the tables whose first column has that heading."""
    rows: list[list[str]] = []
    inside = False
    for line in tree.lines(page) if page.exists() else []:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first_column:
            inside = True
        elif inside and not cells[0].startswith("---"):
            rows.append(cells)
    return rows


def documented(rows: list[list[str]]) -> Entries:
    return {row[0].strip("`"): (row[1], frozenset(CODE_SPAN.findall(row[2]))) for row in rows}


def documented_events(page: Path) -> Entries:
    events = documented(table(page, "event"))
    if REQUEST in events:
        fields = frozenset(row[0].strip("`") for row in table(page, "field"))
        events[REQUEST] = (events[REQUEST][0], fields)
    return events


def compare(page: Path, written: Entries, described: Entries) -> Iterator[str]:
    for name in sorted(written.keys() - described.keys()):
        yield f"{page}: lacks {name}"
    for name in sorted(described.keys() - written.keys()):
        yield f"{page}: {name} is written nowhere in src/"
    for name in sorted(written.keys() & described.keys()):
        (kind, parts), (said_kind, said_parts) = written[name], described[name]
        if kind != said_kind:
            yield f"{page}: {name} is a {kind}, not a {said_kind}"
        for part in sorted(parts ^ said_parts):
            yield f"{page}: {name} {'lacks' if part in parts else 'does not have'} `{part}`"


def check(root: Path) -> Iterator[str]:
    metrics = documented(table(root / METRICS_PAGE, "metric"))
    yield from compare(METRICS_PAGE, written_metrics(root), metrics)
    yield from compare(LOGS_PAGE, written_events(root), documented_events(root / LOGS_PAGE))


if __name__ == "__main__":
    tree.main("telemetry", check)
