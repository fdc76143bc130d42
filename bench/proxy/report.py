# SPDX-License-Identifier: Apache-2.0
"""From raw rows of the proxy benchmark to the tables of docs/performance.md."""

import datetime
import os
import platform
from pathlib import Path
from statistics import median

NO_VALUE = "–"


class Machine:
    """Where and when the run took place. Made before it, asked after it."""

    def __init__(self):
        self.date = datetime.datetime.now(datetime.timezone.utc)
        self.load_average = os.getloadavg()[0]
        self.ticks = self.cpu_ticks()

    @staticmethod
    def cpu_ticks():
        return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]

    @staticmethod
    def field(path, name, separator):
        for line in Path(path).read_text().splitlines():
            key, _, value = line.partition(separator)
            if key.strip() == name:
                return value.strip().strip('"')
        return None

    def facts(self):
        spent = [now - then for now, then in zip(self.cpu_ticks(), self.ticks)]
        return {
            "date": self.date.strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": self.field("/proc/cpuinfo", "model name", ":") or platform.processor(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
            "system": self.field("/etc/os-release", "PRETTY_NAME", "="),
            "kernel": platform.release(),
            "load_average_before": self.load_average,
            # CPU time the hypervisor gave to others; much of it makes the figures doubtful.
            "steal_percent": round(100 * spent[7] / max(sum(spent), 1), 2),
        }


# One figure out of a raw row. All are better when smaller, but for rates.
FIGURES = {
    "us_per_event": lambda row: row["cpu_us"] / row["events"],
    "us_per_answer": lambda row: row["cpu_us"] / row["answers"],
    "events_per_second": lambda row: row["events"] / row["seconds"],
    "answers_per_second": lambda row: row["answers"] / row["seconds"],
    "p50_us": lambda row: row["p50_us"],
    "p99_us": lambda row: row["p99_us"],
    "kib_per_stream": lambda row: row["memory_growth_bytes"] / row["connections"] / 1024,
}


def one_line(row):
    """Progress: what one measurement gave."""

    def text(figure, form):
        return form.format(FIGURES[figure](row))

    if row["measure"] == "A":
        late = ", LATE" if row["late"] else ""
        return (text("us_per_event", "{:.2f} µs/event")
                + text("events_per_second", ", {:.0f}/s") + late)
    if row["measure"] == "B" and row["target"] == "direct":  # no proxy to count the CPU time of
        return text("answers_per_second", "{:.0f}/s")
    if row["measure"] == "B":
        return text("us_per_answer", "{:.2f} µs/answer") + text("answers_per_second", ", {:.0f}/s")
    if row["measure"] == "C":
        return text("p50_us", "p50 {:.1f} µs") + text("p99_us", ", p99 {:.1f} µs")
    return text("kib_per_stream", "{:.2f} KiB/stream")


class Figures:
    """Medians over rounds of what was measured."""

    def __init__(self, rows):
        self.rows = rows

    def targets(self, measure):
        return list(dict.fromkeys(row["target"] for row in self.rows if row["measure"] == measure))

    def by_round(self, measure, target, figure):
        return {
            row["round"]: FIGURES[figure](row)
            for row in self.rows
            if row["measure"] == measure and row["target"] == target
        }

    def median(self, measure, target, figure):
        values = self.by_round(measure, target, figure).values()
        return median(values) if values else None

    def any_late(self, target):
        return any(row["late"] for row in self.rows if row["target"] == target)

    def added(self, target, figure):
        """Latency above direct's: subtracted round by round, so that slow drift cancels out."""
        direct = self.by_round("C", "direct", figure)
        mine = self.by_round("C", target, figure)
        differences = [mine[number] - direct[number] for number in mine if number in direct]
        return median(differences) if differences and target != "direct" else None

    def ratio(self, measure, target, figure):
        anchor = self.median(measure, "nginx", figure)
        return self.median(measure, target, figure) / anchor if anchor else None


def cell(value, form):
    return NO_VALUE if value is None else form.format(value)


def table(head, lines):
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def with_range(figures, measure, target, figure, form):
    values = figures.by_round(measure, target, figure).values()
    text = form.format(median(values))
    if len(values) > 1:
        text += f" ({form.format(min(values))}–{form.format(max(values))})"
    return text


def table_a(figures):
    lines = []
    for target in figures.targets("A"):
        per_event = figures.median("A", target, "us_per_event")
        lines.append([
            target,
            with_range(figures, "A", target, "us_per_event", "{:.2f}")
            + (" late" if figures.any_late(target) else ""),
            cell(figures.ratio("A", target, "us_per_event"), "{:.2f}"),
            f"{1000 / per_event:.0f}k",
            cell(figures.median("A", target, "events_per_second"), "{:.0f}"),
        ])
    head = ["", "CPU µs/event", "vs nginx", "events/s per core", "events/s in the test"]
    text = table(head, lines)
    if any(row["late"] for row in figures.rows):
        text += "\n\nlate: the proxy did not keep up in some round, so its figure may be too low."
    return text


def table_b(figures):
    lines = []
    for target in figures.targets("B"):
        observed = cell(figures.median("B", target, "answers_per_second"), "{:.0f}")
        if target == "direct":
            lines.append([target, NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE, observed])
            continue
        ratio = figures.ratio("B", target, "us_per_answer")
        lines.append([
            target,
            with_range(figures, "B", target, "us_per_answer", "{:.2f}"),
            cell(ratio, "{:.2f}"),
            f"{1e6 / figures.median('B', target, 'us_per_answer'):.0f}",
            cell(1 / ratio if ratio else None, "{:.2f}"),
            observed,
        ])
    head = ["", "CPU µs/request", "vs nginx", "requests/s per core", "vs nginx",
            "requests/s in the test"]
    return table(head, lines)


def table_c(figures):
    lines = [
        [
            target,
            with_range(figures, "C", target, "p50_us", "{:.1f}"),
            with_range(figures, "C", target, "p99_us", "{:.1f}"),
            cell(figures.added(target, "p50_us"), "{:.1f}"),
            cell(figures.added(target, "p99_us"), "{:.1f}"),
        ]
        for target in figures.targets("C")
    ]
    return table(["", "p50 µs", "p99 µs", "added p50 µs", "added p99 µs"], lines)


def table_d(figures):
    lines = [
        [
            target,
            with_range(figures, "D", target, "kib_per_stream", "{:.2f}"),
            cell(figures.ratio("D", target, "kib_per_stream"), "{:.2f}"),
        ]
        for target in figures.targets("D")
    ]
    return table(["", "KiB/stream", "vs nginx"], lines)


def goals(figures):
    """Each goal with the two figures it compares; nothing for what this run did not measure."""
    per_event = [figures.median("A", name, "us_per_event") for name in ("Baton", "nginx")]
    per_answer = [figures.median("B", name, "us_per_answer") for name in ("Baton", "nginx")]
    added = [figures.added(name, "p99_us") for name in ("Baton", "HAProxy")]
    memory = [figures.median("D", "Baton", "kib_per_stream"), 6.0]
    rates = [1e6 / value if value else None for value in per_answer]
    compared = [
        ("CPU per event no more than nginx's", per_event, "{:.2f} µs against {:.2f} µs",
         lambda ours, bound: ours <= bound),
        ("requests/s per core above nginx's", rates, "{:.0f} against {:.0f}",
         lambda ours, bound: ours > bound),
        ("added p99 no worse than HAProxy's", added, "{:.1f} µs against {:.1f} µs",
         lambda ours, bound: ours <= bound),
        ("at most 6 KiB per open stream", memory, "{:.2f} KiB against {:.0f} KiB",
         lambda ours, bound: ours <= bound),
    ]
    return [
        f"- {goal}: **{'met' if holds(*values) else 'missed'}** ({form.format(*values)})"
        for goal, values, form, holds in compared
        if None not in values
    ]


def markdown(result):
    machine = result["machine"]
    figures = Figures(result["rows"])
    parts = [
        f"`{result['command']}` on {machine['date']}, Baton at {result['commit']}"
        + (f", beside {' and '.join(result['versions'])}" if result["versions"] else "")
        + f". Machine: {machine['cores']} × {machine['cpu'] or machine['architecture']} "
        f"({machine['architecture']}), {machine['memory_gib']} GiB, {machine['system']}, kernel "
        f"{machine['kernel']}; load average before the run {machine['load_average_before']:.2f}, "
        f"stolen by the hypervisor {machine['steal_percent']} %. Every answer was complete and "
        "right, byte for byte."
    ]
    if result["quick"]:
        parts.append("**Quick run: one short round each. Not for the record.**")
    parts += [f"Warning: {warning}." for warning in result["warnings"]]
    for letter, make in zip("ABCD", (table_a, table_b, table_c, table_d)):
        if figures.targets(letter):
            measure = result["measures"][letter]
            rounds = measure["rounds"]
            over = "one round" if rounds == 1 else f"median of {rounds} rounds (lowest–highest)"
            parts += [f"**{letter}. {measure['title']}**, {over}", make(figures)]
    reached = goals(figures)
    if reached and not result["quick"]:
        parts += ["**Goals**", "\n".join(reached)]
    return "\n\n".join(parts) + "\n"
