# SPDX-License-Identifier: Apache-2.0
"""A simulated fleet with a router in front of it, and the load that is put on it."""

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "proxy"))

import targets  # noqa: E402
from targets import Failure  # noqa: E402

MODEL = "bench"
PREFILL_WORKERS = DECODE_WORKERS = 4
BLOCK_SIZE = 16
BATCHED_TOKENS = 1024         # 8192 at an eighth of the length, as all else
DECODE_STEP_MS = 5
PREFILL_STEP_MS = 1           # what a step costs beside its tokens
TRANSFER_MS, TRANSFER_MS_PER_BLOCK = 2, 0.01
HEARD_TIMEOUT_S = 15


def say(text):
    print(text, file=sys.stderr, flush=True)


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode()
        if response.status != 200:
            raise Failure(f"{path} answered {response.status}: {body[:200]}")
        return body
    finally:
        connection.close()


class Process:
    """One of Baton's commands as a process of its own, which ends when this one does."""

    def __init__(self, folder, name, command, ready):
        log_path = folder / f"{name}.log"
        with open(log_path, "w") as log:
            self.process = targets.spawn(command, None, log)
        self.name, self.log_path = name, log_path
        self.port = targets.wait_until(self.process, log_path, name,
                                       lambda: targets.port_in(ready))

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def resident_bytes(self):
        text = Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * 4096

    def stop(self):
        targets.stop(self.process)


class Engine(Process):
    """A simulated vLLM that tells of its KV blocks."""

    def __init__(self, folder, baton, role, number, flags):
        self.role = role
        name = f"{role}-{number}"
        ready, events, replay = (folder / f"{name}.{kind}" for kind in ("ready", "kv", "replay"))
        flags = {"engine": "vllm", "role": role, "port": 0, "model": MODEL, "ready-file": ready,
                 "block-size": BLOCK_SIZE, "max-batched-tokens": BATCHED_TOKENS,
                 "decode-ms": PREFILL_STEP_MS if role == "prefill" else DECODE_STEP_MS,
                 "transfer-ms": TRANSFER_MS, "transfer-ms-per-block": TRANSFER_MS_PER_BLOCK,
                 "kv-events": "tcp://127.0.0.1:0", "kv-ready-file": events,
                 "kv-replay": "tcp://127.0.0.1:0", "kv-replay-ready-file": replay} | flags
        command = [baton, "sim"] + [part for key, value in flags.items()
                                    for part in (f"--{key}", value)]
        super().__init__(folder, name, command, ready)
        self.events = events.read_text().strip()
        self.replay = replay.read_text().strip()

    def config(self):
        return {"url": f"http://127.0.0.1:{self.port}", "engine": "vllm", "role": self.role,
                "id": self.name, "kv_events": self.events, "kv_replay": self.replay}


class Fleet:
    """Simulated engines and one router."""

    def __init__(self, folder, baton, settings, prefill_speed, blocks, serve_flags=()):
        self.engines = []
        self.router = None
        try:
            for role, count in (("prefill", PREFILL_WORKERS), ("decode", DECODE_WORKERS)):
                for number in range(1, count + 1):
                    self.engines.append(Engine(folder, baton, role, number, {
                        "prefill-tokens-per-second": prefill_speed,
                        # Decoding is not what is measured: there is room for all of it.
                        "blocks": blocks if role == "prefill" else 4 * blocks}))
            ready, admin_ready = folder / "router.ready", folder / "admin.ready"
            config = folder / "baton.yaml"
            config.write_text(json.dumps({
                "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "log": {"requests": False},
                "models": [{"name": MODEL, **settings,
                            "workers": [engine.config() for engine in self.engines]}]}))
            self.router = Process(folder, "router",
                                  [baton, "serve", "--config", config, "--ready-file", ready,
                                   "--admin-ready-file", admin_ready, *serve_flags], ready)
            self.admin_port = targets.port_in(admin_ready)
            self.wait_until_heard()
        except BaseException:
            self.stop()
            raise

    def wait_until_heard(self):
        """Until the router knows all workers and subscribes to their events."""
        deadline = time.monotonic() + HEARD_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(Failure, OSError):
                caches = json.loads(get(self.admin_port, "/v1/index"))["caches"]
                if len([cache for cache in caches if cache["state"] is not None]) == \
                        len(self.engines):
                    return
            time.sleep(0.05)
        raise Failure("the router does not listen to all simulated engines")

    def cpu_seconds(self):
        return {"router": self.router.cpu_seconds(),
                "engines": sum(engine.cpu_seconds() for engine in self.engines)}

    def stop(self):
        if self.router is not None:
            self.router.stop()
        for engine in self.engines:
            engine.stop()


@contextlib.contextmanager
def running(*arguments, **more):
    fleet = Fleet(*arguments, **more)
    try:
        yield fleet
    finally:
        fleet.stop()


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


def bench(baton, folder, port, flags, timeout):
    """Runs `baton bench` and gives its result."""
    output = folder / "result.json"
    output.unlink(missing_ok=True)
    command = [baton, "bench", "--url", f"http://127.0.0.1:{port}", "--model", MODEL,
               "--quiet", "--output", output]
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
    if status != 0 or not output.exists():
        raise Failure(f"baton bench failed: {log_path.read_text()[-2000:]}")
    return json.loads(output.read_text())
