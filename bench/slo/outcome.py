# SPDX-License-Identifier: Apache-2.0
"""Tables of goodput and attainment, and the goals of a router that gets far too much to do."""

import report  # bench/proxy
from settings import AGAIN, CALM, LOADS, OVERLOAD, POLICIES
from tables import cell  # bench/routing

GOAL_GOODPUT, GOAL_REFUSED_MS, GOAL_GROWTH, GOAL_RECOVERY = 0.9, 10, 1.05, 1.25


class Outcome:
    def __init__(self, rows):
        self.rows = {(row["policy"], row["load"]): row for row in rows}
        self.policies = list(dict.fromkeys(row["policy"] for row in rows))

    def row(self, policy, load):
        return self.rows[policy, load]

    def table(self, name):
        """Policies against loads, for one figure that is a share."""
        lines = [[policy] + [cell(self.row(policy, load)[name], "{:.0%}") for load in LOADS]
                 for policy in self.policies]
        return report.table(["", *LOADS], lines)

    def details(self, policy):
        lines = []
        for load in LOADS:
            row = self.row(policy, load)
            lines.append([load, f"{row['sent_per_s']:.0f}", f"{row['refused']:,}", f"{row['cut']:,}",
                          f"{row['failed']:,}", cell(row["ttft_mean"], "{:.0f}"),
                          cell(row["ttft_p99"], "{:.0f}"), cell(row["itl_p99"], "{:.0f}"),
                          cell(row["refused_p99"], "{:.1f}")])
        return report.table(["", "sent/s", "refused", "cut", "failed", "TTFT mean ms", "p99",
                             "ITL p99 ms", "refused p99 ms"], lines)

    def goals(self, policy):
        over = self.row(policy, OVERLOAD)
        result_of = lambda met: "met" if met else "missed"
        failed = sum(self.row(policy, load)["failed"] for load in LOADS)
        yield f"- {policy}: nothing failed: **{result_of(failed == 0)}** ({failed:,})"
        if not POLICIES[policy].bounded:
            return
        peak = max(self.row(policy, load)["goodput"] for load in LOADS)
        share = over["goodput"] / peak if peak else 0
        yield (f"- {policy}: goodput at {OVERLOAD} at least {GOAL_GOODPUT:.0%} of the peak: "
               f"**{result_of(share >= GOAL_GOODPUT)}** ({share:.0%})")
        refused, told, late = over["refused"], over["told"], over["refused_p99"] or 0
        yield (f"- {policy}: refused with Retry-After: **{result_of(refused > 0 and told == refused)}** "
               f"({told:,} of {refused:,}); in under {GOAL_REFUSED_MS} ms, p99: "
               f"**{result_of(late < GOAL_REFUSED_MS)}** ({late:.1f} ms)")
        yield (f"- {policy}: memory flat: **{result_of(over['memory_growth'] <= GOAL_GROWTH)}** (second "
               f"half of {OVERLOAD} {over['memory_growth']:.2f} × the first, "
               f"{over['memory_mib']:.0f} MiB at most)")
        before, again = (self.row(policy, load)["ttft_mean"] for load in (CALM, AGAIN))
        answered = before is not None and again is not None
        yield (f"- {policy}: as before at once: "
               f"**{result_of(answered and again <= GOAL_RECOVERY * before)}** (mean TTFT "
               f"{cell(again, '{:.0f}')} ms, before {cell(before, '{:.0f}')} ms at {CALM})")

    def paragraphs(self):
        goals = [goal for policy in self.policies for goal in self.goals(policy)]
        return ["**Goodput**, requests that met the target, of what the fleet can do",
                self.table("goodput"),
                "**Attainment**, requests that met the target, of those that were served",
                self.table("attainment"), "**Goals**", "\n".join(goals)]

    def all_details(self):
        for policy in self.policies:
            yield f"**{policy}**"
            yield self.details(policy)
