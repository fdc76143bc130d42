# SPDX-License-Identifier: Apache-2.0
"""What is compared: a target, a fleet, loads, and the settings of the model that stand for each policy."""

import json
import subprocess
from dataclasses import dataclass, replace

import generators  # bench/routing
from layout import Layout
from targets import Failure
from workloads import Workload

TTFT_MS, ITL_MS = 300, 40
PROMPT_TOKENS, ANSWER_TOKENS = 512, 32
CAPACITY = 60   # requests a second that the prefill workers can compute
# With as many sequences as that makes, a decode worker that gets its share takes 30 ms for a step, and one
# that gets twice as many misses the target.
LAYOUT = Layout(flags={"decode": {"decode-ms": 15, "decode-ms-per-seq": 1}})
SPEED = CAPACITY * PROMPT_TOKENS / LAYOUT.prefill


@dataclass(frozen=True)
class Policy:
    settings: dict
    # Whether it refuses what it cannot serve; otherwise everything piles up, and the overload is kept short.
    bounded: bool = True


POLICIES = {
    "slo": Policy({"policy": "ttft", "slo": {"ttft": f"{TTFT_MS}ms", "itl": f"{ITL_MS}ms"}}),
    "ttft": Policy({"policy": "ttft"}, bounded=False),
    # For people who talk: no request is to wait for long.
    "ttft-wait": Policy({"policy": "ttft", "queue": {"longest_wait": "200ms"}}),
    # A worker with one prompt to compute beside the one that it computes is busy; one more may wait for each.
    "kv-queue": Policy({"policy": "kv", "queue": {"busy_tokens": PROMPT_TOKENS,
                                                  "requests_per_worker": 1, "patience": "2s"}}),
    "least_loaded": Policy({"policy": "least_loaded"}, bounded=False),
}


@dataclass(frozen=True)
class Phase:
    """A steady load, as a share of what the fleet can do, with prompts that have nothing in common."""

    name: str
    load: float


# One after the other on one fleet, at once.
OVERLOAD, CALM, AGAIN = "1000 %", "80 %", "80 % again"
PHASES = (Phase("50 %", 0.5), Phase(CALM, 0.8), Phase("100 %", 1), Phase("120 %", 1.2),
          Phase("200 %", 2), Phase(OVERLOAD, 10), Phase(AGAIN, 0.8))

USUAL = Workload("", "", generators.all_distinct, LAYOUT, rate=CAPACITY, load=0.9,
                 ttft_target_ms=TTFT_MS, itl_target_ms=ITL_MS)
# Each on a fleet of its own.
SCENARIOS = (
    replace(USUAL, name="bursts", about="64 at once, half of what the fleet can do on average",
            requests=generators.bursts, rate=CAPACITY / 2, load=0.5, warmup=64),
    replace(USUAL, name="long among short", about="one prompt of ten thirty times as long",
            requests=generators.long_and_short),
    replace(USUAL, name="one slow worker", about="one prefill and one decode worker at half speed",
            layout=replace(LAYOUT, slowness={"prefill-1": 2, "decode-1": 2})),
)
LOADS = tuple(phase.name for phase in PHASES) + tuple(scenario.name for scenario in SCENARIOS)


def refusal(baton, folder, settings):
    """Why this router cannot take the settings; None where it can. Only a key that it does not know is a reason."""
    config = folder / "check.yaml"
    config.write_text(json.dumps({
        "listen": "127.0.0.1:0",
        "models": [{"name": "check", **settings, "workers": [{"url": "http://127.0.0.1:9"}]}]}))
    checked = subprocess.run([baton, "serve", "--config", config, "--check"], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if checked.returncode == 0:
        return None
    for key in settings:
        if f"unknown key '{key}'" in checked.stdout:
            return f"this router does not know the option '{key}' of a model"
    raise Failure(f"the router refuses {settings}: {checked.stdout.strip()[:500]}")
