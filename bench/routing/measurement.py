# SPDX-License-Identifier: Apache-2.0
"""One plan in front of a fresh fleet under one policy: what came of it, as a row of figures."""

import math
import tempfile
from pathlib import Path

import fleet
import load
from fleet import say
from targets import Failure

TIMEOUT_S = 180  # beyond what a load is expected to take
MOST_DISTURBANCE = 0.02


def under_load(baton, scratch, plan, settings, flags=None):
    """The plan's load on a fleet of its own, whose router has the settings."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    with fleet.running(folder, baton, settings, plan.workload.layout, plan.speed) as running:
        return load.observe(baton, folder, running, plan.flags | plan.targets() | (flags or {}),
                            plan.actions(running), plan.expected_seconds() + TIMEOUT_S)


def check_complete(plan, policy, summary):
    """Every request was answered, and with as many tokens as it asked for."""
    counts = summary["requests"]
    if any(counts[what] for what in ("failed", "refused", "cut", "not_sent")):
        raise Failure(f"{policy}, {plan.workload.name}: not every request was answered: {counts} "
                      f"{summary['errors']}")
    for what, expected, found in (("requests", plan.requests, counts["completed"]),
                                  ("tokens", plan.answer_tokens, summary["output_tokens"])):
        if expected is not None and expected != found:
            raise Failure(f"{policy}, {plan.workload.name}: answers of {found:,} {what}, where "
                          f"{expected:,} were asked for")


def balance_of(result, role, what):
    """The busiest worker against the average one; None where the role did nothing of that."""
    return result["balance"].get(role, {}).get(what, {}).get("max_over_mean")


def throughput(result, plan):
    """Requests answered a second while the load was steady. What comes after the last request was sent would
    make it a matter of a single answer."""
    begin, end = math.ceil(plan.warmup_s), math.floor(plan.warmup_s + plan.measured_s)
    width, points = result["series"]["width_s"], result["series"]["points"]
    completed = [point["completed"] for point in points if begin <= point["t"] <= end - width]
    if not completed:
        return result["summary"]["requests_per_s"]
    return sum(completed) / (width * len(completed))


def measure(baton, scratch, plan, policy):
    observed = under_load(baton, scratch, plan, {"policy": policy})
    summary, result = observed.summary, observed.result
    check_complete(plan, policy, summary)
    # The load generator calls an aggregated worker a decode worker.
    computing = "prefill" if plan.workload.layout.prefill else "decode"
    return {"workload": plan.workload.name, "seed": plan.seed, "policy": policy,
            "about": str(plan.workload), "prompt_tokens": plan.prompt_tokens,
            "new_tokens": plan.new_tokens, "speed": plan.speed,
            "hit_rate": summary["hit_rate"], "throughput": throughput(result, plan),
            "ttft_mean": summary["ttft_ms"]["mean"], "ttft_p50": summary["ttft_ms"]["p50"],
            "ttft_p90": summary["ttft_ms"]["p90"], "ttft_p99": summary["ttft_ms"]["p99"],
            "itl_p99": summary["itl_ms"]["p99"], "goodput": summary["goodput"]["share"],
            "balance": balance_of(result, computing, "computed_tokens"),
            "decode_balance": balance_of(result, "decode", "output_tokens"),
            "disturbance": observed.disturbance, "cpu_share": observed.cpu_share,
            "cpu": observed.cpu, "late_p99": summary["send_lateness_ms"].get("p99"),
            "seconds": observed.seconds}


def measure_in_peace(baton, scratch, plan, policy, attempts):
    """Measures again where others kept the machine busy; the least disturbed attempt counts."""
    best = None
    for _ in range(attempts):
        row = measure(baton, scratch, plan, policy)
        if best is None or row["disturbance"] < best["disturbance"]:
            best = row
        if best["disturbance"] <= MOST_DISTURBANCE:
            break
        say(f"  {policy:13} disturbed: {row['disturbance']:.1%} of the time no process got to run")
    return best
