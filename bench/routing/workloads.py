# SPDX-License-Identifier: Apache-2.0
"""The workloads: what is sent, the fleet that serves it, how busy that is, and what happens meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import generators
import traces
from layout import Layout
from targets import Failure

RATE = 100     # requests a second
LOAD = 0.8     # of what the workers that compute prompts can do
WARMUP = 150   # requests that fill the caches and show how fast workers are; not measured


@dataclass(frozen=True)
class ClosedLoop:
    """So many users, each of whom asks again as soon as there is an answer. Prompts have nothing in common."""

    users: int
    prompt_tokens: int
    answer_tokens: int
    spread: float = 0.5     # both vary by up to this share
    warmup_s: float = 3


@dataclass(frozen=True)
class Change:
    """A worker becomes slower while a workload is measured."""

    worker: str
    slowness: float         # how many times as long its steps last from then on
    share: float = 0.5      # of the measured time that has gone by


@dataclass(frozen=True)
class Workload:
    name: str
    about: str
    # A function of seed, number and rate that gives requests with times, or users.
    requests: Callable | ClosedLoop
    layout: Layout = Layout()
    rate: float = RATE
    # Workers are as fast as makes the rate that share of what they can do; or have a speed: prompt tokens a second.
    load: float = LOAD
    speed: float | None = None
    warmup: int = WARMUP
    length: float = 1       # of the measurement, against others
    changes: tuple[Change, ...] = ()
    ttft_target_ms: float = 300
    itl_target_ms: float = 15

    def __str__(self):
        load = f"{self.requests.users} users" if isinstance(self.requests, ClosedLoop) else \
            f"{self.rate:.0f} requests/s"
        return f"{self.name}: {self.about}; {load}, {self.layout}"


# What the fleet was before it became a part of the workload. The old goals are of these.
COMPARED = ("trace", "shared system prompt", "multi-turn", "all distinct", "hot document",
            "long and short")


def steps_of(ms, users):
    return Workload(
        f"steps of {ms} ms", f"short prompts, many at once; no step is shorter than {ms} ms",
        ClosedLoop(users, prompt_tokens=64, answer_tokens=8, warmup_s=3 + ms / 100),
        Layout(step_ms=0, floor_ms=ms), speed=50_000, ttft_target_ms=10 * ms,
        itl_target_ms=1.5 * ms)


def catalogue(conversations):
    """All workloads but those of trace files. `conversations` are requests like a recorded trace's."""
    return [
        Workload("shared system prompt", "24 applications with long system prompts",
                 generators.shared_system_prompt),
        Workload("multi-turn", "conversations of three to ten turns", generators.multi_turn),
        Workload("all distinct", "nothing in common, tens to thousands of tokens",
                 generators.all_distinct),
        Workload("hot document", "two of three about one long document", generators.hot_document),
        Workload("long and short", "one of ten thirty times as long", generators.long_and_short),
        steps_of(10, 48), steps_of(40, 128), steps_of(100, 256), steps_of(300, 512),
        Workload("bursts", "64 requests at once, then nothing until all workers are idle",
                 generators.bursts, rate=32, load=0.4, warmup=64, length=1.5, ttft_target_ms=600),
        Workload("cold start", "conversations at full rate for workers of which nothing is known",
                 conversations, warmup=0, length=0.5),
        Workload("half-speed worker", "nothing in common; one worker of four takes twice as long",
                 generators.all_distinct, Layout(slowness={"prefill-1": 2})),
        Workload("worker slows down", "conversations; halfway one worker of four takes four times as long",
                 conversations, load=0.6, changes=(Change("prefill-2", 4),)),
        Workload("32k among chats", "conversations, and three of a hundred prompts of 32k tokens",
                 generators.long_among_chats, Layout(attention=0.6), load=0.7),
        Workload("large fleet", "conversations on 16 + 16 workers", conversations,
                 Layout(prefill=16, decode=16, flags={"decode": {"decode-ms": 10}}),
                 ttft_target_ms=600, itl_target_ms=20),
        Workload("8 aggregated", "conversations; workers that do both", conversations,
                 Layout(prefill=0, decode=0, aggregated=8), load=0.6, ttft_target_ms=600,
                 itl_target_ms=60),
        Workload("8 aggregated short", "short prompts, many at once, steps of 40 ms",
                 ClosedLoop(128, prompt_tokens=64, answer_tokens=12),
                 Layout(prefill=0, decode=0, aggregated=8, step_ms=0, floor_ms=40), speed=50_000,
                 ttft_target_ms=400, itl_target_ms=60),
        # 24 sequences in steps of 14.8 ms: 120 of these answers a second.
        Workload("decode-bound", "long answers on decode workers with few places",
                 generators.long_answers,
                 Layout(flags={"decode": {"decode-ms": 10, "decode-ms-per-seq": 0.2, "max-seqs": 24}}),
                 speed=20_000, itl_target_ms=20),
        Workload("agents", "long shared histories, short turns, several tool calls at once",
                 generators.agents),
    ]


def trace_workloads(files):
    """One for each file: `trace`, or where there are several, each with its name."""
    names = ["trace"] if len(files) == 1 else [f"trace {Path(file).stem}" for file in files]
    if len(set(names)) < len(names):
        raise Failure("two of the trace files have the same name: rename one")
    return [Workload(name, Path(file).name, recorded(file)) for name, file in zip(names, files)]


def recorded(file):
    rows = traces.read(file)
    return lambda seed, count, rate: traces.sample(rows, seed, count, rate)


def all_workloads(files, default_trace):
    """What is measured where nothing else is said. The conversations are those of the recorded trace, or made up
    where it is not there."""
    there = default_trace.exists()
    conversations = recorded(default_trace) if there else generators.chat_like
    if files:
        first = trace_workloads(files)
    else:
        about = "recorded conversations" if there else "made up, in the shape of conversations"
        first = [Workload("trace", about, conversations)]
    return first + catalogue(conversations)


def chosen(workloads, names):
    """Those of these names, in which a hyphen may stand for a blank; all where there is no name."""
    if not names:
        return workloads
    plain = lambda name: name.replace("-", " ").lower()
    by_name = {plain(workload.name): workload for workload in workloads}
    unknown = [name for name in names if plain(name) not in by_name]
    if unknown:
        raise Failure(f"no workload '{unknown[0]}'; there are: "
                      + ", ".join(workload.name for workload in workloads))
    wanted = {plain(name) for name in names}
    return [workload for name, workload in by_name.items() if name in wanted]
