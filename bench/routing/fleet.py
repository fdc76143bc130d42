# SPDX-License-Identifier: Apache-2.0
"""A simulated fleet with a router in front of it: processes that end when this one does."""

import contextlib
import http.client
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "proxy"))

import layout  # noqa: E402
import targets  # noqa: E402
from targets import Failure  # noqa: E402

MODEL = "bench"
HEARD_TIMEOUT_S = 20


def say(text):
    print(text, file=sys.stderr, flush=True)


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read().decode()
        if response.status != 200:
            raise Failure(f"{path} answered {response.status}: {answer[:200]}")
        return json.loads(answer)
    finally:
        connection.close()


class Process:
    """One of Baton's commands. It runs from the beginning, and can be asked once it is ready."""

    def __init__(self, folder, name, command, ready_file):
        self.name, self.ready_file = name, ready_file
        self.log_path = folder / f"{name}.log"
        with open(self.log_path, "w") as log:
            self.process = targets.spawn(command, None, log)

    def wait_until_ready(self):
        self.port = targets.wait_until(self.process, self.log_path, self.name,
                                       lambda: targets.port_in(self.ready_file))

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

    def __init__(self, folder, baton, name, flags):
        self.role = layout.role_of(name)
        ready, self.events_file, self.replay_file = (
            folder / f"{name}.{kind}" for kind in ("ready", "kv", "replay"))
        flags = {"engine": "vllm", "role": self.role, "port": 0, "model": MODEL,
                 "ready-file": ready, "kv-events": "tcp://127.0.0.1:0",
                 "kv-ready-file": self.events_file, "kv-replay": "tcp://127.0.0.1:0",
                 "kv-replay-ready-file": self.replay_file} | flags
        command = [baton, "sim"] + [part for key, value in flags.items()
                                    for part in (f"--{key}", value)]
        super().__init__(folder, name, command, ready)

    def config(self):
        return {"url": f"http://127.0.0.1:{self.port}", "engine": "vllm", "role": self.role,
                "id": self.name, "kv_events": self.events_file.read_text().strip(),
                "kv_replay": self.replay_file.read_text().strip()}


class Fleet:
    """The engines of a layout, which compute `speed` prompt tokens a second, and one router."""

    def __init__(self, folder, baton, settings, shape, speed):
        self.engines, self.router = {}, None
        try:
            for worker in shape.workers():
                self.engines[worker] = Engine(folder, baton, worker,
                                              shape.engine_flags(baton, worker, speed))
            for engine in self.engines.values():
                engine.wait_until_ready()
            for worker, factor in shape.slowness.items():
                self.slow_down(worker, factor)
            ready, admin_ready = folder / "router.ready", folder / "admin.ready"
            config = folder / "baton.yaml"
            config.write_text(json.dumps({
                "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "log": {"requests": False},
                "models": [{"name": MODEL, **settings, "workers": [
                    engine.config() for engine in self.engines.values()]}]}))
            self.router = Process(folder, "router", [
                baton, "serve", "--config", config, "--ready-file", ready,
                "--admin-ready-file", admin_ready], ready)
            self.router.wait_until_ready()
            self.wait_until_heard(targets.port_in(admin_ready))
        except BaseException:
            self.stop()
            raise

    def wait_until_heard(self, admin_port):
        """Until the router knows all workers and subscribes to their events."""
        deadline = time.monotonic() + HEARD_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(Failure, OSError):
                caches = ask(admin_port, "GET", "/v1/index")["caches"]
                if sum(cache["state"] is not None for cache in caches) == len(self.engines):
                    return
            time.sleep(0.05)
        raise Failure("the router does not listen to all simulated engines")

    def slow_down(self, worker, factor):
        """From now on the worker's steps last `factor` times as long."""
        ask(self.engines[worker].port, "POST", "/sim/faults",
            {"kind": "slow_steps", "factor": factor})

    def cpu_seconds(self):
        return {"router": self.router.cpu_seconds(),
                "engines": sum(engine.cpu_seconds() for engine in self.engines.values())}

    def stop(self):
        processes = list(self.engines.values())
        if self.router is not None:
            processes.insert(0, self.router)
        for process in processes:
            process.process.terminate()
        for process in processes:
            process.stop()


@contextlib.contextmanager
def running(*arguments):
    fleet = Fleet(*arguments)
    try:
        yield fleet
    finally:
        fleet.stop()
