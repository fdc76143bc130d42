# SPDX-License-Identifier: Apache-2.0
"""A workload of one seed, ready to be sent: the same for every policy."""

from dataclasses import dataclass, field

import traces
import workloads
from layout import BLOCK_SIZE
from targets import Failure

WARMUP_SLOWER = 2       # how many times slower the first requests come
TAIL_S = 1              # until the last answer is there
START_S, START_S_OF_WORKER = 1, 0.06


@dataclass
class Plan:
    workload: workloads.Workload
    seed: int
    flags: dict                 # for `baton bench`
    speed: float                # prompt tokens a second of each worker that computes them
    warmup_s: float
    measured_s: float           # about
    prompt_tokens: float        # of a request, on average
    new_tokens: float           # of them, what has to be computed under a good policy
    answer_tokens: int | None = None    # of all measured answers together, where that is known
    requests: int | None = None         # that are measured, likewise
    changes: list = field(default_factory=list)  # pairs of seconds from the start, and a change

    def __post_init__(self):
        self.changes = [(self.warmup_s + change.share * self.measured_s, change)
                        for change in self.workload.changes]

    def actions(self, fleet):
        """What happens to a fleet under this load, and when."""
        return [(at, lambda change=change: fleet.slow_down(change.worker, change.slowness))
                for at, change in self.changes]

    def expected_seconds(self):
        """Of one measurement, with the start of all processes."""
        start = START_S + START_S_OF_WORKER * len(self.workload.layout.workers())
        return start + self.warmup_s + self.measured_s + TAIL_S

    def targets(self):
        return {"slo-ttft": self.workload.ttft_target_ms, "slo-itl": self.workload.itl_target_ms}

    def __str__(self):
        what = f"{self.requests} prompts" if self.requests else "prompts"
        new = "" if self.new_tokens == self.prompt_tokens else f", {self.new_tokens:,.0f} of them new"
        return (f"{self.workload.name}, seed {self.seed}: {what} of {self.prompt_tokens:,.0f} tokens"
                f"{new}; {self.workload.layout} at {self.speed:,.0f} tokens/s")


def make(workload, folder, seed, seconds):
    """`seconds` are those of a workload of the usual length."""
    measured_s = seconds * workload.length
    if isinstance(workload.requests, workloads.ClosedLoop):
        return closed_loop(workload, seed, measured_s)
    return replay(workload, folder, seed, measured_s)


def closed_loop(workload, seed, measured_s):
    users = workload.requests
    flags = {"workload": "distinct", "seed": seed, "concurrency": users.users,
             "input-tokens": users.prompt_tokens, "output-tokens": users.answer_tokens,
             "spread": users.spread, "warmup": f"{round(1000 * users.warmup_s)}ms",
             "duration": f"{round(1000 * (users.warmup_s + measured_s))}ms"}
    return Plan(workload, seed, flags, workload.speed, users.warmup_s, measured_s,
                users.prompt_tokens, users.prompt_tokens)


def replay(workload, folder, seed, measured_s):
    wanted = workload.warmup + round(workload.rate * measured_s)
    entries = workload.requests(seed, wanted, workload.rate)
    if len(entries) < 2:
        raise Failure(f"{workload.name}: {len(entries)} requests are too few to measure anything")
    warmup = min(workload.warmup, len(entries) // 4)
    layout = workload.layout
    work = traces.least_work(entries, len(layout.computing()), layout.blocks * BLOCK_SIZE, warmup)
    # The rate is given; the engines are as fast as makes it `load` of what they can do.
    speed = workload.speed or workload.rate * work / (workload.load * layout.capacity())
    entries = traces.warm_up_slowly(entries, warmup, WARMUP_SLOWER)
    path = folder / f"{workload.name.replace(' ', '-')}-{seed}.jsonl"
    traces.write(entries, path)
    measured = entries[warmup:]
    flags = {"workload": "trace", "trace": path, "trace-block": traces.BLOCK, "warmup": warmup}
    return Plan(workload, seed, flags, speed, measured[0]["at"], measured[-1]["at"] - measured[0]["at"],
                sum(entry["input_length"] for entry in entries) / len(entries), work,
                sum(entry["output_length"] for entry in measured), len(measured))
