# SPDX-License-Identifier: Apache-2.0
"""Lists of requests in the shape of Mooncake's traces: read, sampled, timed and written.

All lengths are in tokens, an eighth of what real traffic has (SCALE), so that two cores are enough for a
router, simulated engines and the load. `hash_ids` has one id for each BLOCK tokens of a prompt; equal ids in
equal places are equal tokens. `at` is when a request is sent, in seconds.
"""

import itertools
import json
import random

from targets import Failure

SCALE = 8
BLOCK = 512 // SCALE  # tokens that one id of a trace stands for
OUTPUT_SCALE = 16     # answers cost a router's time, not a simulated engine's; fewer tokens serve as well
LONGEST = 131_072     # scaled tokens of a request; what the simulated model and its workers take
MOST_REQUESTS = 2_000_000
LATEST_MS = 1e15      # some thirty thousand years


def request(blocks, tokens, output):
    return {"input_length": max(1, tokens), "output_length": max(1, output), "hash_ids": blocks}


# ---- files --------------------------------------------------------------------------------------

def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def parse_line(line):
    """One request as the trace tells it. Raises ValueError with what is wrong."""
    try:
        row = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    at = row.get("timestamp")
    number = whole(at) or isinstance(at, float)
    if not number or not 0 <= at < LATEST_MS:
        raise ValueError("'timestamp' must be there and be milliseconds from 0")
    if not whole(row.get("input_length")) or row["input_length"] < 1:
        raise ValueError("'input_length' must be there and be a number of tokens from 1")
    if not whole(row.get("output_length")) or row["output_length"] < 0:
        raise ValueError("'output_length' must be there and be a number of tokens")
    ids = row.get("hash_ids")
    if not isinstance(ids, list) or not all(map(whole, ids)):
        raise ValueError("'hash_ids' must be there and be a list of whole numbers")
    if row["input_length"] // SCALE + row["output_length"] // OUTPUT_SCALE >= LONGEST:
        raise ValueError(f"a request of more than {SCALE * LONGEST:,} tokens, which is more than "
                         "the simulated model takes")
    return {"at": at / 1000, "input_length": row["input_length"],
            "output_length": row["output_length"], "hash_ids": ids}


def read(path):
    """The requests of a file in Mooncake's format, in order of time."""
    rows, names = [], {}
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = parse_line(line)
                except ValueError as problem:
                    raise Failure(f"{path}, line {number}: {problem}") from None
                # Ids may be any numbers; small ones say the same.
                row["hash_ids"] = [names.setdefault(name, len(names)) for name in row["hash_ids"]]
                rows.append(row)
                if len(rows) > MOST_REQUESTS:
                    raise Failure(f"{path} has more than {MOST_REQUESTS:,} requests; cut it")
    except OSError as problem:
        raise Failure(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is not text") from None
    if not rows:
        raise Failure(f"there is no request in {path}")
    rows.sort(key=lambda row: row["at"])
    return rows


def spread_out(rows):
    """Traces tell times in steps (Mooncake's: about 3 s): requests of one come evenly over the shortest of them."""
    stamps = sorted({row["at"] for row in rows})
    step = min((after - before for before, after in itertools.pairwise(stamps)), default=1.0)
    timed = []
    for stamp, group in itertools.groupby(rows, key=lambda row: row["at"]):
        group = list(group)
        timed += [row | {"at": stamp + step * i / len(group)} for i, row in enumerate(group)]
    return timed


def sample(rows, seed, count, rate):
    """Some of a recorded trace, others for each seed, sped up to the rate.

    A conversation's turns lie minutes apart, so a short piece of the trace would have few that come back.
    Instead, of half of the trace some conversations are taken, each with all its turns.
    """
    rng = random.Random(seed)
    half = max(len(rows) // 2, min(len(rows), count))
    begin = rng.randrange(len(rows) - half + 1)
    # Prompts may all have the first block in common; the second tells conversations apart.
    conversations = {}
    for number, row in enumerate(spread_out(rows[begin:begin + half])):
        conversations.setdefault(tuple(row["hash_ids"][:2]) or (-1 - number,), []).append(row)
    chosen = []
    for conversation in rng.sample(sorted(conversations), len(conversations)):
        if len(chosen) >= count:
            break
        chosen += conversations[conversation]
    chosen.sort(key=lambda row: row["at"])
    entries = []
    for row in chosen[:count]:
        entry = request(row["hash_ids"], row["input_length"] // SCALE,
                        row["output_length"] // OUTPUT_SCALE)
        entry["hash_ids"] = entry["hash_ids"][:-(-entry["input_length"] // BLOCK)]
        entry["at"] = row["at"]
        entries.append(entry)
    return at_rate(entries, rate)


def write(entries, path):
    with open(path, "w") as out:
        for entry in entries:
            line = {"timestamp": round(entry["at"] * 1000, 3), **entry}
            del line["at"]
            out.write(json.dumps(line) + "\n")


# ---- times --------------------------------------------------------------------------------------

def at_rate(entries, rate):
    """Requests in order of time, stretched or pressed to so many a second on average, the first at 0."""
    first, span = entries[0]["at"], entries[-1]["at"] - entries[0]["at"]
    for number, entry in enumerate(entries):
        # Where all come at once, nothing says in what order: then evenly.
        share = (entry["at"] - first) / span if span > 0 else number / len(entries)
        entry["at"] = share * len(entries) / rate
    return entries


def poisson(rng, entries, rate):
    """Requests one after the other, at random."""
    at = 0.0
    for entry in entries:
        entry["at"] = at
        at += rng.expovariate(rate)
    return entries


def warm_up_slowly(entries, count, factor):
    """The first `count` requests come `factor` times slower, so that caches fill before anybody waits."""
    begun = entries[count]["at"]
    for number, entry in enumerate(entries):
        entry["at"] = entry["at"] * factor if number < count else entry["at"] + begun * (factor - 1)
    return entries


# ---- what they cost -----------------------------------------------------------------------------

class Cache:
    """A prefix cache of which the least recently used blocks go first."""

    def __init__(self, tokens):
        self.room = tokens // BLOCK
        self.blocks = {}  # in order of use

    def new_tokens(self, entry):
        full = min((entry["input_length"] - 1) // BLOCK, len(entry["hash_ids"]))
        hits = 0
        while hits < full and entry["hash_ids"][hits] in self.blocks:
            hits += 1
        return entry["input_length"] - hits * BLOCK

    def use(self, entry):
        for block in reversed(entry["hash_ids"]):  # a prefix outlives what follows it
            self.blocks.pop(block, None)
            self.blocks[block] = True
        while len(self.blocks) > self.room:
            del self.blocks[next(iter(self.blocks))]


def least_work(entries, workers, cache_tokens, skip):
    """Prompt tokens for each request after the first `skip` that a policy which knows all caches, and does
    not care about time, has computed: each prompt goes to the worker that has most of it, of those that are not
    ahead of the least busy worker by more than eight average prompts."""
    caches = [Cache(cache_tokens) for _ in range(workers)]
    done = [0] * workers
    slack = 8 * sum(entry["input_length"] for entry in entries) / len(entries)
    computed = 0
    for number, entry in enumerate(entries):
        least = min(done)
        new, chosen = min((cache.new_tokens(entry), worker) for worker, cache in enumerate(caches)
                          if done[worker] <= least + slack)
        caches[chosen].use(entry)
        done[chosen] += new
        if number >= skip:
            computed += new
    return computed / (len(entries) - skip)
