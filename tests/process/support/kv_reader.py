#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads KV events with libraries that are not Baton's, and prints each message as one line of JSON.

kv_reader.py follow [--bind] ENDPOINT...        live messages, until it is ended
kv_reader.py replay ENDPOINT FIRST              what is kept from batch FIRST on

A line has the index of the endpoint, the number of frames, the topic, the sequence number, and the batch: its time, its
rank and its events by field name. Hashes are unsigned numbers in hex; "shape" tells how an event was encoded. A payload
that is not msgpack has no batch. The end of a replay is {"end": true, "frames": n}.
"""
import json
import sys

import msgpack
import zmq

STORED = ["type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
          "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"]
REMOVED = ["type", "block_hashes", "medium", "group_idx"]
FIELDS = {"BlockStored": STORED, "BlockRemoved": REMOVED, "AllBlocksCleared": ["type"]}
TIMEOUT_MS = 20_000
END = b"\xff" * 8


def number(value):
    if value is None:
        return None
    if isinstance(value, bytes):
        return "0x" + value[-8:].hex()
    return f"0x{value & 0xFFFFFFFFFFFFFFFF:016x}"


def event(raw):
    if isinstance(raw, dict):
        out = dict(raw, shape=f"map {len(raw)}")
    else:
        fields = FIELDS[raw[0]]
        if len(raw) > len(fields):
            raise ValueError(f"an event of {len(raw)} elements")
        out = dict(zip(fields, raw), shape=f"array {len(raw)}")
        if isinstance(out.get("lora_name"), dict):
            out.update(out.pop("lora_name"))
    hashes = out.get("block_hashes", [])
    if any(isinstance(one, bytes) for one in hashes):
        out["shape"] += f" bin {len(hashes[0])}"
    if "block_hashes" in out:
        out["block_hashes"] = [number(one) for one in hashes]
    if "parent_block_hash" in out:
        out["parent_block_hash"] = number(out["parent_block_hash"])
    return out


def batch(payload):
    try:
        time, events, rank = msgpack.unpackb(payload, strict_map_key=False)
    except Exception:
        return None
    return {"time": time, "rank": rank, "events": [event(one) for one in events]}


def tell(index, frames, topic, sequence, payload):
    line = {"endpoint": index, "frames": frames, "topic": topic.decode(), "seq": int.from_bytes(sequence, "big"),
            "batch": batch(payload)}
    print(json.dumps(line), flush=True)


def follow(endpoints, bind):
    context = zmq.Context()
    poller = zmq.Poller()
    sockets = {}
    for index, endpoint in enumerate(endpoints):
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        (socket.bind if bind else socket.connect)(endpoint)
        if bind:
            print(json.dumps({"bound": socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()}), flush=True)
        sockets[socket] = index
        poller.register(socket, zmq.POLLIN)
    while True:
        for socket, _ in poller.poll():
            topic, sequence, payload = socket.recv_multipart()
            tell(sockets[socket], 3, topic, sequence, payload)


def replay(endpoint, first):
    socket = zmq.Context().socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
    socket.connect(endpoint)
    socket.send_multipart([b"", first.to_bytes(8, "big")])
    while True:
        frames = socket.recv_multipart()
        if frames[0] != b"":
            raise ValueError(f"a reply that begins with {frames[0]!r}")
        sequence, payload = frames[-2:]
        if payload == b"":
            if sequence != END:
                raise ValueError(f"a replay that ends with {sequence!r}")
            print(json.dumps({"end": True, "frames": len(frames)}), flush=True)
            return
        tell(0, len(frames), frames[1] if len(frames) == 4 else b"", sequence, payload)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "follow":
        follow([one for one in arguments if one != "--bind"], "--bind" in arguments)
    else:
        replay(arguments[0], int(arguments[1]))
