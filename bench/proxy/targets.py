# SPDX-License-Identifier: Apache-2.0
"""The processes of the proxy benchmark: the backend and the proxies in front of it."""

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

START_TIMEOUT_S = 10
STOP_TIMEOUT_S = 5
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Failure(Exception):
    """Something that makes the run invalid, told to the person who started it."""


def open_file_limit():
    """Raises the limit to what is allowed; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def cores():
    """(the proxy's core, the core of backend and load generator)."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Failure("two CPU cores are needed: one for the proxy, one for the rest")
    return allowed[0], allowed[1]


def spawn(command, core, log):
    """Starts a process on one core, or on any where that is None; it ends when this one does, however that
    happens."""

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if core is not None:
            os.sched_setaffinity(0, {core})

    return subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        preexec_fn=prepare,
    )


def stop(process):
    """Ends the process; returns False if it had to be killed."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
        return True
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether GET /v1/models gives 200 there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET /v1/models HTTP/1.0\r\nHost: bench\r\n\r\n")
            return b" 200 " in connection.recv(4096)[:16]
    except OSError:
        return False


def wait_until(process, log_path, what, condition):
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    stop(process)
    tail = log_path.read_text(errors="replace")[-2000:]
    raise Failure(f"{what} did not start; its output ends with:\n{tail}")


def port_in(ready_file):
    with contextlib.suppress(OSError):
        return int(ready_file.read_text().rsplit(":", 1)[1])
    return None


class Backend:
    """A simulated worker; all proxies stand in front of the same aggregated one."""

    def __init__(self, program, role, folder, core):
        self.log_path = folder / f"backend-{role}.log"
        ready_file = self.log_path.with_suffix(".ready")
        with open(self.log_path, "w") as log:
            command = [program, "--role", role, "--ready-file", ready_file]
            self.process = spawn(command, core, log)
        self.port = wait_until(
            self.process, self.log_path, f"the {role} backend", lambda: port_in(ready_file)
        )


class Direct:
    """No proxy at all."""

    name = "direct"
    measures = "BC"
    program = None

    def version(self):
        return None

    @contextlib.contextmanager
    def running(self, run):
        yield run.workers["aggregated"].port, 0


class Proxy:
    """A proxy that is started afresh for each measurement, so that none inherits from another."""

    measures = "ABCD"

    def command(self, run, port, folder):
        """Writes what the proxy reads, returns how to start it."""
        raise NotImplementedError

    def port_of(self, port, folder):
        """The port it serves on, once it does."""
        return port if answers(port) else None

    def pid_of(self, process):
        """The process that does the work."""
        return process.pid

    @contextlib.contextmanager
    def running(self, run):
        folder = run.new_folder(self.name)
        log_path = folder / "output.log"
        port = free_port()
        with open(log_path, "w") as log:
            process = spawn(self.command(run, port, folder), run.proxy_core, log)
        try:
            serving = wait_until(
                process, log_path, self.name, lambda: self.port_of(port, folder)
            )
            yield serving, self.pid_of(process)
            if process.poll() is not None:
                tail = log_path.read_text(errors="replace")[-2000:]
                raise Failure(f"{self.name} ended while it was measured:\n{tail}")
        finally:
            if not stop(process):
                run.warn(f"{self.name} did not end within {STOP_TIMEOUT_S} s of SIGTERM")


NGINX_CONFIG = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile {files};
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 100000000;
  upstream backend {{
    server 127.0.0.1:{backend};
    keepalive 1024;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


class Nginx(Proxy):
    name = "nginx"
    program = "nginx"

    def version(self):
        return first_line(["nginx", "-v"]).replace("nginx version: ", "")

    def command(self, run, port, folder):
        config = folder / "nginx.conf"
        config.write_text(
            NGINX_CONFIG.format(
                folder=folder,
                port=port,
                backend=run.workers["aggregated"].port,
                files=run.open_files,
                connections=min(16384, run.open_files),
            )
        )
        # The compiled-in log is opened before the configuration is read.
        return ["nginx", "-e", "stderr", "-p", folder, "-c", config]

    def pid_of(self, process):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if len(children) != 1:
            raise Failure(f"nginx should have one worker, and has {len(children)}")
        return int(children[0])


HAPROXY_CONFIG = """\
global
  nbthread 1
  maxconn {connections}
defaults
  mode http
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port} backlog 4096
  default_backend back
backend back
  server one 127.0.0.1:{backend}
"""


class Haproxy(Proxy):
    name = "HAProxy"
    program = "haproxy"

    def version(self):
        return " ".join(first_line(["haproxy", "-v"]).split()[:3])

    def command(self, run, port, folder):
        config = folder / "haproxy.cfg"
        config.write_text(
            HAPROXY_CONFIG.format(
                # It needs two files a connection, and refuses to start if it cannot have them.
                connections=min(6000, run.open_files // 2 - 200),
                port=port,
                backend=run.workers["aggregated"].port,
            )
        )
        return ["haproxy", "-db", "-q", "-f", config]


class Baton(Proxy):
    name = "Baton"
    program = "baton"
    log_requests = False

    def version(self):
        return None  # built from this tree, whose commit the report names

    def workers(self, run):
        return [(run.workers["aggregated"].port, "aggregated")]

    def command(self, run, port, folder):
        config = folder / "baton.yaml"
        workers = [
            {"url": f"http://127.0.0.1:{worker}", "engine": "vllm", "role": role}
            for worker, role in self.workers(run)
        ]
        settings = {
            "listen": "127.0.0.1:0",
            "threads": 1,
            "shutdown_grace": "1s",
            "limits": {"idle_upstreams": 1024},
            "log": {"requests": self.log_requests},
            "models": [{"name": "bench", "policy": "round_robin", "workers": workers}],
        }
        config.write_text(json.dumps(settings, indent=2))  # JSON is YAML
        return [run.baton, "serve", "--config", config, "--ready-file", folder / "ready"]

    def port_of(self, port, folder):
        return port_in(folder / "ready")


class BatonLogging(Baton):
    name = "Baton, request log on"
    measures = "AB"
    log_requests = True


class BatonDisaggregated(Baton):
    name = "Baton, prefill+decode"
    measures = "ABC"

    def workers(self, run):
        return [(run.workers[role].port, role) for role in ("prefill", "decode")]


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).splitlines()[0]


# By the name one gives to --only, in the order of the report.
TARGETS = {
    "direct": Direct(),
    "nginx": Nginx(),
    "haproxy": Haproxy(),
    "baton": Baton(),
    "baton-log": BatonLogging(),
    "baton-pd": BatonDisaggregated(),
}
