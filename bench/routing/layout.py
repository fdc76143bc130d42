# SPDX-License-Identifier: Apache-2.0
"""What the fleet of a workload is: how many simulated workers, and what each is told."""

import functools
import subprocess
from dataclasses import dataclass, field

ROLES = ("prefill", "decode", "aggregated")
BLOCK_SIZE = 16
BATCHED_TOKENS = 1024         # 8192 at an eighth of the length, as all else
# What a step takes beside the time of its prompt tokens.
STEP_MS = {"prefill": 1, "decode": 5, "aggregated": 5}
TRANSFER_MS, TRANSFER_MS_PER_BLOCK = 2, 0.01
LONG_PROMPT = 4096            # 32k


@functools.cache
def flags_known(baton):
    """The help of `baton sim`, which names every flag it has."""
    return subprocess.run([baton, "sim", "--help"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def step_flags(baton, speed, added_ms, floor_ms, attention):
    """The flags for a step that lasts `added_ms` and as long as its tokens take, but at least `floor_ms`; a prompt
    of LONG_PROMPT tokens takes longer than its tokens by the share `attention`. A simulator that does not know
    these adds the minimum to every step, and knows no attention."""
    flags = {"prefill-tokens-per-second": speed, "decode-ms": added_ms}
    known = flags_known(baton)
    if floor_ms and "--step-floor-ms" in known:
        flags["step-floor-ms"] = floor_ms
    elif floor_ms:
        flags["decode-ms"] = max(added_ms, floor_ms)
    if attention and "--attention-ns-per-pair" in known:
        pairs = LONG_PROMPT ** 2 / 2
        flags["attention-ns-per-pair"] = 1e9 * attention * LONG_PROMPT / speed / pairs
    return flags


@dataclass(frozen=True)
class Layout:
    """Workers are called by role and number: prefill-1, decode-4, aggregated-8."""

    prefill: int = 4
    decode: int = 4
    aggregated: int = 0
    blocks: int = 8192             # for KV of those that compute prompts: 131,072 tokens
    step_ms: float | None = None   # beside its tokens; None: what STEP_MS says of the role
    floor_ms: float = 0            # no step is shorter
    attention: float = 0           # how much longer, as a share, a prompt of LONG_PROMPT tokens takes for it
    slowness: dict = field(default_factory=dict)  # by worker: how many times as long its steps last
    flags: dict = field(default_factory=dict)     # by role or worker: what else its engine is told

    def workers(self):
        return [f"{role}-{number}" for role in ROLES
                for number in range(1, getattr(self, role) + 1)]

    def computing(self):
        """Those that compute prompts."""
        return [worker for worker in self.workers() if role_of(worker) != "decode"]

    def capacity(self):
        """How many workers of the usual speed compute as many prompts."""
        return sum(1 / self.slowness.get(worker, 1) for worker in self.computing())

    def engine_flags(self, baton, worker, speed):
        """What `baton sim` is told of how the worker computes; `speed` in prompt tokens a second."""
        role = role_of(worker)
        step_ms = STEP_MS[role] if self.step_ms is None else self.step_ms
        return {"block-size": BLOCK_SIZE, "max-batched-tokens": BATCHED_TOKENS,
                # Room for decoding is not what is measured, unless the workload says so.
                "blocks": 4 * self.blocks if role == "decode" else self.blocks,
                "transfer-ms": TRANSFER_MS, "transfer-ms-per-block": TRANSFER_MS_PER_BLOCK,
                **step_flags(baton, speed, step_ms, self.floor_ms, self.attention),
                **self.flags.get(role, {}), **self.flags.get(worker, {})}

    def __str__(self):
        counts = ((role, getattr(self, role)) for role in ROLES)
        return " + ".join(f"{count} {role}" for role, count in counts if count)


def role_of(worker):
    return worker.rpartition("-")[0]
