#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An engine's KV events, published with Debian's zmq and msgpack and none of Baton's code.

Each line of standard input is a JSON object; each is answered by one on standard output.
  {"publish": [event, …]}   a batch; an event is {"type": "BlockStored", …} with the fields' names
  {"lose": [event, …]}      a batch that only a replay brings
  {"repeat": true}          the last batch once more
  {"frames": ["…", …]}      a message of these frames, in hex, whatever they are
Events are sent by name or by position, as --encoding says. The first line that is written names the
endpoints; a batch is answered with its number.
"""

import argparse
import collections
import json
import sys
import threading
import time

import msgpack
import zmq

END = b"\xff" * 8
# The order of the fields where they have no names.
POSITIONS = {
    "BlockStored": [
        "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
        "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window",
    ],
    "BlockRemoved": ["block_hashes", "medium", "group_idx"],
    "AllBlocksCleared": [],
}


def by_position(event: dict) -> list:
    names = POSITIONS.get(event["type"], sorted(event.keys() - {"type"}))
    used = max((i + 1 for i, name in enumerate(names) if name in event), default=0)
    return [event["type"], *(event.get(name) for name in names[:used])]


class Publisher:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.context = zmq.Context()
        self.events = self.context.socket(zmq.PUB)
        self.events.set_hwm(100_000)
        if options.connect:
            self.events.connect(options.connect)
        else:
            self.events.bind(options.events)
        self.replay = self.context.socket(zmq.ROUTER)
        self.replay.bind(options.replay)
        self.next = options.first
        self.ring: collections.deque = collections.deque(maxlen=options.ring)
        self.lock = threading.Lock()

    def endpoints(self) -> dict:
        return {name: socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
                for name, socket in (("events", self.events), ("replay", self.replay))}

    def batch(self, events: list, arrives: bool) -> int:
        if self.options.encoding == "array":
            events = [by_position(event) for event in events]
        payload = msgpack.packb([time.time(), events, self.options.rank])
        with self.lock:
            number = self.next
            self.next += 1
            self.ring.append((number, payload))
        if arrives:
            self.send(number, payload)
        return number

    def repeat(self) -> int:
        number, payload = self.ring[-1]
        self.send(number, payload)
        return number

    def send(self, number: int, payload: bytes) -> None:
        self.events.send_multipart([self.options.topic.encode(), number.to_bytes(8, "big"), payload])

    def answer_replays(self) -> None:
        topic = [self.options.topic.encode()] if self.options.framing == "new" else []
        while True:
            identity, *request = self.replay.recv_multipart()
            if len(request) != 2 or request[0] or len(request[1]) != 8:
                continue
            first = int.from_bytes(request[1], "big")
            with self.lock:
                batches = [batch for batch in self.ring if batch[0] >= first]
            for number, payload in batches:
                self.replay.send_multipart([identity, b"", *topic, number.to_bytes(8, "big"), payload])
            empty = [b""] if topic else []
            self.replay.send_multipart([identity, b"", *empty, END, b""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", default="tcp://127.0.0.1:*", help="bound")
    parser.add_argument("--connect", help="the subscriber's endpoint, instead of --events")
    parser.add_argument("--replay", default="tcp://127.0.0.1:*", help="bound")
    parser.add_argument("--topic", default="")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    parser.add_argument("--ring", type=int, default=10_000, help="batches that can be repeated")
    parser.add_argument("--encoding", choices=("array", "map"), default="map")
    parser.add_argument("--framing", choices=("old", "new"), default="new", help="of replays")
    publisher = Publisher(parser.parse_args())
    threading.Thread(target=publisher.answer_replays, daemon=True).start()
    print(json.dumps(publisher.endpoints()), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if "frames" in command:
            number = publisher.events.send_multipart([bytes.fromhex(frame) for frame in command["frames"]])
        elif "repeat" in command:
            number = publisher.repeat()
        else:
            arrives = "publish" in command
            number = publisher.batch(command["publish" if arrives else "lose"], arrives)
        print(json.dumps({"sequence": number}), flush=True)


if __name__ == "__main__":
    main()
