# SPDX-License-Identifier: Apache-2.0
"""What is sent: lists of requests in the shape of Mooncake's traces, made of a seed.

All lengths are in tokens, an eighth of what real traffic has (SCALE), so that two cores are enough for a
router, eight simulated engines and the load. `hash_ids` has one id for each BLOCK tokens of a prompt; equal
ids in equal places are equal tokens.
"""

import itertools
import json
import random

SCALE = 8
BLOCK = 512 // SCALE  # tokens that one id of a trace stands for
OUTPUT_SCALE = 16     # answers cost a router's time, not a simulated engine's; fewer tokens serve as well


class Ids:
    """Names for blocks. Those of a text come back when the text does."""

    def __init__(self):
        self.next = itertools.count()
        self.texts = {}

    def fresh(self, tokens):
        return [next(self.next) for _ in range(-(-tokens // BLOCK))]

    def text(self, name, tokens):
        return self.texts.setdefault(name, self.fresh(tokens))


def request(blocks, tokens, output):
    return {"input_length": max(1, tokens), "output_length": max(1, output), "hash_ids": blocks}


def poisson(rng, requests, rate):
    """Requests one after the other, with times in seconds."""
    at = 0.0
    for entry in requests:
        entry["at"] = at
        at += rng.expovariate(rate)
    return requests


def zipf(rng, count, exponent=1.0):
    weights = [1 / (rank + 1) ** exponent for rank in range(count)]
    return lambda: rng.choices(range(count), weights)[0]


# ---- the workloads ------------------------------------------------------------------------------

def recorded(path, seed, count, rate):
    """A sample of the recorded trace, another one for each seed, sped up to the rate.

    A conversation's turns lie minutes apart, so a short piece of the trace would have few that come back.
    Instead, of half of the trace some conversations are taken, each with all its turns.
    """
    with open(path) as lines:
        rows = [json.loads(line) for line in lines]
    rng = random.Random(seed)
    half = len(rows) // 2
    begin = rng.randrange(len(rows) - half + 1)
    rows = rows[begin:begin + half]
    # The trace tells times in steps of 3 s. Requests of one step come evenly spread over it.
    for stamp, group in itertools.groupby(rows, key=lambda row: row["timestamp"]):
        group = list(group)
        for i, row in enumerate(group):
            row["at"] = stamp / 1000 + 3 * i / len(group)
    # All prompts have the first block in common; the second tells conversations apart.
    conversations = {}
    for row in rows:
        conversations.setdefault(tuple(row["hash_ids"][:2]), []).append(row)
    chosen = []
    for conversation in rng.sample(sorted(conversations), len(conversations)):
        if len(chosen) >= count:
            break
        chosen += conversations[conversation]
    chosen.sort(key=lambda row: row["at"])
    first, span = chosen[0]["at"], max(chosen[-1]["at"] - chosen[0]["at"], 1e-9)
    entries = []
    for row in chosen:
        entry = request(row["hash_ids"], row["input_length"] // SCALE,
                        row["output_length"] // OUTPUT_SCALE)
        entry["hash_ids"] = entry["hash_ids"][:-(-entry["input_length"] // BLOCK)]
        entry["at"] = (row["at"] - first) / span * (len(chosen) / rate)
        entries.append(entry)
    return entries


def chat_like(seed, count, rate):
    """In place of the recorded trace where there is none: conversations that come back with all that was
    said before, one system block for all, mostly middling and a few very long prompts."""
    rng = random.Random(seed)
    ids = Ids()
    system = ids.text("system", BLOCK)
    open_ones, entries = [], []
    for _ in range(count):
        if open_ones and rng.random() < 0.45:
            history = open_ones.pop(rng.randrange(len(open_ones)))
        else:
            history = system + ids.fresh(int(min(rng.lognormvariate(6.6, 1.1), 15_000)))
        blocks = history + ids.fresh(int(rng.expovariate(1 / 100)) + 8)
        entries.append(request(blocks, len(blocks) * BLOCK, int(rng.expovariate(1 / 21)) + 1))
        if rng.random() < 0.6:
            open_ones.append(blocks)
    return poisson(rng, entries, rate)


def shared_system_prompt(seed, count, rate):
    """24 applications, some far more used than others, each with a long system prompt of its own."""
    rng = random.Random(seed)
    ids = Ids()
    application = zipf(rng, 24)
    entries = []
    for _ in range(count):
        prefix = ids.text(application(), 16 * BLOCK)
        own = rng.randrange(32, 512)
        entries.append(request(prefix + ids.fresh(own), 16 * BLOCK + own, rng.randrange(4, 40)))
    return poisson(rng, entries, rate)


def multi_turn(seed, count, rate):
    """Conversations of three to ten turns; each turn brings all that was said before."""
    rng = random.Random(seed)
    ids = Ids()
    system = ids.text("system", 2 * BLOCK)
    entries, at = [], 0.0
    turns_of_all = 0
    while turns_of_all < 2 * count:
        turns = rng.randrange(3, 11)
        turns_of_all += turns
        history, when = list(system), at
        for _ in range(turns):
            history = history + ids.fresh(rng.randrange(BLOCK, 6 * BLOCK))
            entry = request(history, len(history) * BLOCK, rng.randrange(4, 40))
            entry["at"] = when
            entries.append(entry)
            when += 0.4 + rng.expovariate(1 / 0.6)
        at += rng.expovariate(rate / 6.5)
    # From where as many conversations end as begin.
    entries.sort(key=lambda entry: entry["at"])
    entries = entries[count // 4:count // 4 + count]
    span = entries[-1]["at"] - entries[0]["at"]
    first = entries[0]["at"]
    for entry in entries:
        entry["at"] = (entry["at"] - first) / span * (count / rate)
    return entries


def all_distinct(seed, count, rate):
    """No two prompts have anything in common."""
    rng = random.Random(seed)
    ids = Ids()
    entries = []
    for _ in range(count):
        tokens = int(min(rng.lognormvariate(6.6, 0.8), 12_000)) + 16
        entries.append(request(ids.fresh(tokens), tokens, rng.randrange(4, 40)))
    return poisson(rng, entries, rate)


def hot_document(seed, count, rate):
    """Two of three requests are about one long document, the others about something of their own."""
    rng = random.Random(seed)
    ids = Ids()
    entries = []
    for _ in range(count):
        if rng.random() < 2 / 3:
            document, own = ids.text("document", 64 * BLOCK), rng.randrange(32, 512)
        else:
            document, own = [], rng.randrange(128, 1024)
        entries.append(request(document + ids.fresh(own), len(document) * BLOCK + own,
                               rng.randrange(4, 40)))
    return poisson(rng, entries, rate)


def long_and_short(seed, count, rate):
    """One of ten prompts is thirty times as long as the others; half of the long ones come twice."""
    rng = random.Random(seed)
    ids = Ids()
    entries, seen = [], []
    for _ in range(count):
        if rng.random() >= 0.1:
            tokens = rng.randrange(64, 384)
            entries.append(request(ids.fresh(tokens), tokens, rng.randrange(4, 40)))
            continue
        body = seen.pop(0) if len(seen) > 4 else None
        if body is None:
            body = ids.fresh(rng.randrange(96, 128) * BLOCK)
            if rng.random() < 2 / 3:
                seen.append(body)
        blocks = body + ids.fresh(128)
        entries.append(request(blocks, len(blocks) * BLOCK, rng.randrange(4, 40)))
    return poisson(rng, entries, rate)


# ---- what a workload costs ----------------------------------------------------------------------

class Cache:
    """A prefix cache of which the least recently used blocks go first."""

    def __init__(self, tokens):
        self.room = tokens // BLOCK
        self.blocks = {}  # in order of use

    def new_tokens(self, entry):
        full = (entry["input_length"] - 1) // BLOCK
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
    not care about time, has computed: each prompt goes to whoever has most of it, of those who are not
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


def warm_up_slowly(entries, count, factor):
    """The first `count` requests come `factor` times slower, so that caches fill before anybody waits."""
    begun = entries[count]["at"]
    for number, entry in enumerate(entries):
        entry["at"] = entry["at"] * factor if number < count else entry["at"] + begun * (factor - 1)
    return entries


def write(entries, path):
    with open(path, "w") as out:
        for entry in entries:
            line = {"timestamp": round(entry["at"] * 1000, 3), **entry}
            del line["at"]
            out.write(json.dumps(line) + "\n")
