# SPDX-License-Identifier: Apache-2.0
"""One policy under every load: how many requests met the target, and what became of the others."""

import contextlib
import threading

import fleet  # bench/routing
import load
import measurement
import plans
from fleet import say
from settings import (ANSWER_TOKENS, CAPACITY, ITL_MS, LAYOUT, OVERLOAD, PHASES,
                      PROMPT_TOKENS, SCENARIOS, SPEED, TTFT_MS)

# What is not answered so long after the last was sent has missed the target by far.
DRAIN_S = 3
WARMUP_S = 2    # of a fleet that has not served anything yet
TIMEOUT_S = 180


class Memory:
    """A process's memory, looked at ten times a second."""

    def __init__(self, process):
        self.process, self.samples, self.over = process, [], threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.over.wait(0.1):
            self.samples.append(self.process.resident_bytes())

    @contextlib.contextmanager
    def watched(self):
        self.thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self.thread.join()

    def growth(self):
        """The most of the second half against the most of the first."""
        half = len(self.samples) // 2
        return max(self.samples[half:]) / max(self.samples[:half])


def row_of(policy, name, capacity, sending_s, observed):
    """`capacity`: requests a second that the fleet can do; `sending_s`: how long measured requests were sent."""
    summary = observed.summary
    counts, good = summary["requests"], summary["goodput"]["good"]
    # Those that were cut had their turn and were not served in time.
    served = counts["completed"] + counts["cut"] + counts["failed"]
    return {"policy": policy, "load": name,
            "sent_per_s": (served + counts["refused"]) / sending_s,
            "goodput": good / sending_s / capacity, "attainment": good / served if served else None,
            "refused": counts["refused"], "told": counts["refused_with_retry_after"],
            "cut": counts["cut"], "failed": counts["failed"] + counts["not_sent"],
            "ttft_mean": summary["ttft_ms"].get("mean"), "ttft_p99": summary["ttft_ms"].get("p99"),
            "itl_p99": summary["itl_ms"].get("p99"), "refused_p99": summary["refused_ms"].get("p99"),
            "cpu_share": observed.cpu_share, "disturbance": observed.disturbance}


def one_line(row):
    attainment = "–" if row["attainment"] is None else f"{row['attainment']:.0%}"
    return (f"  {row['load']:17} goodput {row['goodput']:4.0%} of the fleet, {attainment:>4} of those "
            f"served, {row['refused']:6,} refused, {row['cut']:5,} cut, CPU {row['cpu_share']:.2f}")


def seconds_of(phase, policy, seconds, overload_seconds):
    return overload_seconds if phase.name == OVERLOAD and policy.bounded else seconds


def phases(baton, scratch, name, policy, seconds, overload_seconds):
    """The steady loads one after the other, without a pause, on one fleet."""
    folder = scratch / name
    folder.mkdir()
    with fleet.running(folder, baton, policy.settings, LAYOUT, SPEED) as running:
        for seed, phase in enumerate(PHASES, 1):
            sending = seconds_of(phase, policy, seconds, overload_seconds)
            warmup = WARMUP_S if seed == 1 else 0
            memory = Memory(running.router)
            with memory.watched():
                observed = load.observe(baton, folder, running, {
                    "workload": "distinct", "seed": seed, "input-tokens": PROMPT_TOKENS,
                    "output-tokens": ANSWER_TOKENS, "rate": phase.load * CAPACITY,
                    "warmup": f"{warmup}s", "duration": f"{round(1000 * (warmup + sending))}ms",
                    "drain": f"{DRAIN_S}s", "slo-ttft": TTFT_MS, "slo-itl": ITL_MS}, [], TIMEOUT_S)
            row = row_of(name, phase.name, CAPACITY, sending, observed)
            row |= {"memory_growth": memory.growth(), "memory_mib": max(memory.samples) / 2**20}
            say(one_line(row))
            yield row


def replays(baton, scratch, name, policy, seconds):
    """The other loads, each on a fleet of its own."""
    for workload in SCENARIOS:
        plan = plans.make(workload, scratch, 1, seconds)
        observed = measurement.under_load(baton, scratch, plan, policy.settings)
        row = row_of(name, workload.name, workload.rate / workload.load, plan.measured_s, observed)
        say(one_line(row))
        yield row


def expected_seconds(policy, seconds, overload_seconds):
    start, end = 2, 0.5
    steady = sum(seconds_of(phase, policy, seconds, overload_seconds) + end for phase in PHASES)
    # After what piled up has been cut.
    steady += 0 if policy.bounded else 2 * DRAIN_S
    return start + WARMUP_S + steady + len(SCENARIOS) * (start + seconds + 4 + end)
