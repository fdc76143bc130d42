# SPDX-License-Identifier: Apache-2.0
"""From rows of figures, one for each workload, seed and policy, to tables and goals."""

from dataclasses import dataclass
from statistics import mean

import report  # bench/proxy
from workloads import COMPARED

OURS, FORMULA = "ttft", "kv"
# On every workload, against the best other policy in that figure.
GOAL_MEAN, GOAL_P99, GOAL_THROUGHPUT = 1.05, 1.15, 0.98
# Those that were there before.
GOAL_TRACE, GOAL_FORMULA, GOAL_BEST, GOAL_BALANCE = 0.5, 0.85, 1.02, 1.3


class Figures:
    def __init__(self, rows):
        self.rows = rows
        self.workloads = list(dict.fromkeys(row["workload"] for row in rows))
        self.policies = list(dict.fromkeys(row["policy"] for row in rows))
        self.others = [policy for policy in self.policies if policy != OURS]

    def of(self, workload, policy, name):
        """The mean over the seeds; None where there is no such figure."""
        values = [row[name] for row in self.rows
                  if row["workload"] == workload and row["policy"] == policy]
        return mean(values) if values and None not in values else None

    def best_other(self, workload, name, choose=min):
        """The policy of the others that has the best figure, and ours against it."""
        best = choose(self.others, key=lambda policy: self.of(workload, policy, name))
        theirs = self.of(workload, best, name)
        return best, self.of(workload, OURS, name) / theirs if theirs else 1.0

    def comparable(self):
        return OURS in self.policies and bool(self.others)


def cell(value, form):
    return report.NO_VALUE if value is None else form.format(value)


# ---- the comparison -----------------------------------------------------------------------------

def comparison(figures):
    """One line for each workload: ours against the best of the others."""
    lines = []
    for workload in figures.workloads:
        of_ours = lambda name: figures.of(workload, OURS, name)
        best, ratio = figures.best_other(workload, "ttft_mean")
        calm, tail = figures.best_other(workload, "ttft_p99")
        busy, rate = figures.best_other(workload, "throughput", max)
        lines.append([workload, f"{of_ours('ttft_mean'):.0f}",
                      f"{figures.of(workload, best, 'ttft_mean'):.0f} {best}", f"{ratio:.2f}",
                      f"{of_ours('ttft_p99'):.0f}", f"{tail:.2f} {calm}",
                      f"{of_ours('throughput'):.1f}", f"{rate:.2f} {busy}",
                      cell(of_ours("balance"), "{:.2f}"),
                      cell(of_ours("decode_balance"), "{:.2f}")])
    return report.table(["", f"TTFT mean ms, {OURS}", "best other", "ratio", "p99 ms",
                         "ratio to the best", "requests/s", "ratio to the best",
                         "load max/mean", "of decode"], lines)


# ---- goals --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Goal:
    text: str
    value: float
    bound: float
    sign: str = "≤"

    def met(self):
        return {"≤": self.value <= self.bound, "<": self.value < self.bound,
                "≥": self.value >= self.bound}[self.sign]

    def __str__(self):
        met = self.met()
        return (f"- {self.text}: **{'met' if met else 'missed'}** "
                f"({self.value:.3f} {self.sign if met else 'against'} {self.bound})")


def old_goals(figures):
    """What was asked of the policy when all workloads had one fleet."""
    kinds = figures.workloads
    against = lambda policy: (figures.of("trace", OURS, "ttft_mean")
                              / figures.of("trace", policy, "ttft_mean"))
    for policy, bound in (("round_robin", GOAL_TRACE), (FORMULA, GOAL_FORMULA)):
        if "trace" in kinds and policy in figures.others:
            yield Goal(f"mean TTFT of {OURS} against {policy} on the trace", against(policy), bound)
    for workload in kinds:
        if workload in COMPARED:
            best, ratio = figures.best_other(workload, "ttft_mean")
            yield Goal(f"{workload}: mean TTFT of {OURS} against the best of the others, {best}",
                       ratio, GOAL_BEST)
    if "hot document" in kinds:
        yield Goal(f"hot document: load max/mean of {OURS}",
                   figures.of("hot document", OURS, "balance"), GOAL_BALANCE, "<")


def goals(figures):
    for workload in figures.workloads:
        best, ratio = figures.best_other(workload, "ttft_mean")
        yield Goal(f"{workload}: mean TTFT against {best}", ratio, GOAL_MEAN)
        best, ratio = figures.best_other(workload, "ttft_p99")
        yield Goal(f"{workload}: p99 of TTFT against {best}", ratio, GOAL_P99)
        best, ratio = figures.best_other(workload, "throughput", max)
        yield Goal(f"{workload}: requests/s against {best}", ratio, GOAL_THROUGHPUT, "≥")


def goal_list(title, found):
    met = sum(goal.met() for goal in found)
    lines = sorted(found, key=Goal.met)  # what was missed comes first
    return [f"**{title}**: {met} of {len(found)} met", "\n".join(map(str, lines))]


# ---- all of it ----------------------------------------------------------------------------------

COLUMNS = (("hit rate", "hit_rate", "{:.1%}"), ("TTFT mean ms", "ttft_mean", "{:.0f}"),
           ("p50", "ttft_p50", "{:.0f}"), ("p90", "ttft_p90", "{:.0f}"),
           ("p99", "ttft_p99", "{:.0f}"), ("ITL p99 ms", "itl_p99", "{:.0f}"),
           ("requests/s", "throughput", "{:.1f}"), ("goodput", "goodput", "{:.1%}"),
           ("load max/mean", "balance", "{:.2f}"), ("of decode", "decode_balance", "{:.2f}"),
           ("cores", "cpu_share", "{:.2f}"))


def policy_tables(figures):
    """Every policy on every workload."""
    for workload in figures.workloads:
        first = next(row for row in figures.rows if row["workload"] == workload)
        lines = [[policy] + [cell(figures.of(workload, policy, name), form)
                             for _, name, form in COLUMNS] for policy in figures.policies]
        yield (f"**{workload[0].upper()}{workload[1:]}** ({first['prompt_tokens']:,.0f} tokens, "
               f"{first['new_tokens']:,.0f} of them new)")
        yield report.table(["", *(title for title, _, _ in COLUMNS)], lines)


def summary(figures):
    """The comparison and the goals, as paragraphs; nothing where there is nothing to compare."""
    if not figures.comparable():
        return []
    parts = [comparison(figures)] + goal_list("Goals", list(goals(figures)))
    old = list(old_goals(figures))
    return parts + (goal_list("Earlier goals", old) if old else [])
