# SPDX-License-Identifier: Apache-2.0
"""A real etcd of one member, and as much of its JSON gateway as the fleet benchmark needs."""

import base64
import contextlib
import http.client
import json
import os
import platform

import targets
from targets import Failure

CALL_TIMEOUT_S = 10
MOST_OPERATIONS = 100  # of one transaction; etcd's own limit is 128
PREFIX = "/baton/workers/"


def encode(text):
    return base64.b64encode(text.encode()).decode()


class Client:
    """One kept-alive connection; for one thread."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_TIMEOUT_S)

    def call(self, path, body):
        try:
            self.connection.request("POST", f"/v3/{path}", json.dumps(body))
            response = self.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as problem:
            raise Failure(f"etcd does not answer {path}: {problem}") from None
        if response.status != 200:
            raise Failure(f"etcd answered {path} with {response.status}: {text[:300]}")
        return json.loads(text)

    def put(self, key, value):
        self.call("kv/put", {"key": encode(PREFIX + key), "value": encode(value)})

    def delete(self, key):
        self.call("kv/deleterange", {"key": encode(PREFIX + key)})

    def put_all(self, entries):
        """Many at once: a few transactions."""
        operations = [{"requestPut": {"key": encode(PREFIX + key), "value": encode(value)}}
                      for key, value in entries]
        for first in range(0, len(operations), MOST_OPERATIONS):
            self.call("kv/txn", {"success": operations[first:first + MOST_OPERATIONS]})


def is_healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read()).get("health") == "true"
    return False


@contextlib.contextmanager
def running(folder, core):
    """The port of a new etcd."""
    port, peer_port = targets.free_port(), targets.free_port()
    url, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    command = ["etcd", "--name", "bench", "--data-dir", folder / "etcd.data",
               "--listen-client-urls", url, "--advertise-client-urls", url,
               "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
               "--initial-cluster", f"bench={peers}", "--log-level", "warn"]
    if platform.machine() == "aarch64":
        os.environ["ETCD_UNSUPPORTED_ARCH"] = "arm64"  # what Debian builds and its authors do not
    log_path = folder / "etcd.log"
    with open(log_path, "w") as log:
        process = targets.spawn(command, core, log)
    try:
        targets.wait_until(process, log_path, "etcd", lambda: is_healthy(port))
        yield port
    finally:
        targets.stop(process)
