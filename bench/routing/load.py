# SPDX-License-Identifier: Apache-2.0
"""The load that is put on a fleet by `baton bench`, what happens meanwhile, and how undisturbed that was."""

import contextlib
import json
import resource
import subprocess
import threading
import time
from dataclasses import dataclass

import targets
from fleet import MODEL
from targets import Failure


class Disturbance:
    """How much of the time somebody who wanted to run could not: a thread that sleeps for a moment and looks
    how late it wakes up. Engines that are late simulate a slower engine."""

    MOMENT_S = 0.002

    def __init__(self):
        self.late, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        self.begun = time.monotonic()
        while not self.over.is_set():
            before = time.monotonic()
            time.sleep(self.MOMENT_S)
            # Waking up takes a little in any case.
            self.late += max(0.0, time.monotonic() - before - 2 * self.MOMENT_S)
        self.ended = time.monotonic()

    @contextlib.contextmanager
    def watched(self):
        self.thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self.thread.join()

    def share(self):
        return self.late / (self.ended - self.begun)


@contextlib.contextmanager
def on_time(actions):
    """Does what is to be done so many seconds from now, in a thread of its own; the run fails where that fails or
    ends before its time has come. Gives an event: all has been done."""
    over, done, failures = threading.Event(), threading.Event(), []

    def act():
        begun = time.monotonic()
        for at, action in sorted(actions, key=lambda pair: pair[0]):
            if over.wait(max(0.0, begun + at - time.monotonic())):
                failures.append(f"the load ended before its change at {at:.1f} s")
                return
            try:
                action()
            except (Failure, OSError) as failure:
                failures.append(f"the change at {at:.1f} s failed: {failure}")
                break
        done.set()

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()
    if failures:
        raise Failure(failures[0])


def bench(baton, folder, port, flags, timeout):
    """Runs `baton bench` and gives its result."""
    output = folder / "result.json"
    output.unlink(missing_ok=True)
    command = [baton, "bench", "--url", f"http://127.0.0.1:{port}", "--model", MODEL,
               "--quiet", "--samples", 0, "--output", output]
    for key, value in flags.items():
        command += [f"--{key}", value]
    log_path = folder / "load.log"
    with open(log_path, "w") as log:
        process = targets.spawn(command, None, log)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise Failure("the load generator does not come to an end") from None
    finally:
        if process.poll() is None:
            targets.stop(process)
    # It ends with 1 where it has a result, but no request was answered.
    if status not in (0, 1) or not output.exists():
        raise Failure(f"baton bench failed: {log_path.read_text()[-2000:]}")
    return json.loads(output.read_text())


def cpu_of_children():
    """CPU seconds of those that have ended; while a load runs, that is the load generator."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass
class Observed:
    """What a load has come to: the load generator's result, and what it took."""

    result: dict
    seconds: float
    cpu: dict           # seconds, by who used them
    disturbance: float

    @property
    def summary(self):
        return self.result["summary"]

    @property
    def cpu_share(self):
        return sum(self.cpu.values()) / self.seconds


def observe(baton, folder, fleet, flags, actions, timeout):
    """Puts a load on a fleet and watches. `actions` are pairs of seconds from its start and a function."""
    before, load_before = fleet.cpu_seconds(), cpu_of_children()
    begun = time.monotonic()
    with Disturbance().watched() as disturbance, on_time(actions):
        result = bench(baton, folder, fleet.router.port, flags, timeout)
    seconds = time.monotonic() - begun
    cpu = {name: spent - before[name] for name, spent in fleet.cpu_seconds().items()}
    cpu["load"] = cpu_of_children() - load_before
    return Observed(result, seconds, cpu, disturbance.share())
