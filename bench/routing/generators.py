# SPDX-License-Identifier: Apache-2.0
"""Requests made up of a seed: a function of the seed, their number and their rate for each kind of traffic."""

import itertools
import random

from traces import BLOCK, at_rate, poisson, request


class Ids:
    """Names for blocks. Those of a text come back when the text does."""

    def __init__(self):
        self.next = itertools.count()
        self.texts = {}

    def fresh(self, tokens):
        return [next(self.next) for _ in range(-(-tokens // BLOCK))]

    def text(self, name, tokens):
        return self.texts.setdefault(name, self.fresh(tokens))


def zipf(rng, count, exponent=1.0):
    weights = [1 / (rank + 1) ** exponent for rank in range(count)]
    return lambda: rng.choices(range(count), weights)[0]


def short_answer(rng):
    return rng.randrange(4, 40)


def length(rng, median_log, deviation, most):
    return int(min(rng.lognormvariate(median_log, deviation), most))


def from_the_middle(entries, count, rate):
    """`count` of twice as many requests, from where as many conversations end as begin."""
    entries.sort(key=lambda entry: entry["at"])
    return at_rate(entries[count // 4:count // 4 + count], rate)


def chat_like(seed, count, rate):
    """In place of a recorded trace: conversations that come back with all that was said before, one system
    block for all, mostly middling and a few very long prompts."""
    rng = random.Random(seed)
    ids = Ids()
    system = ids.text("system", BLOCK)
    open_ones, entries = [], []
    for _ in range(count):
        if open_ones and rng.random() < 0.45:
            history = open_ones.pop(rng.randrange(len(open_ones)))
        else:
            history = system + ids.fresh(length(rng, 6.6, 1.1, 15_000))
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
        entries.append(request(prefix + ids.fresh(own), 16 * BLOCK + own, short_answer(rng)))
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
            entry = request(history, len(history) * BLOCK, short_answer(rng))
            entry["at"] = when
            entries.append(entry)
            when += 0.4 + rng.expovariate(1 / 0.6)
        at += rng.expovariate(rate / 6.5)
    return from_the_middle(entries, count, rate)


def all_distinct(seed, count, rate):
    """No two prompts have anything in common."""
    rng = random.Random(seed)
    ids = Ids()
    entries = []
    for _ in range(count):
        tokens = length(rng, 6.6, 0.8, 12_000) + 16
        entries.append(request(ids.fresh(tokens), tokens, short_answer(rng)))
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
                               short_answer(rng)))
    return poisson(rng, entries, rate)


def long_and_short(seed, count, rate):
    """One of ten prompts is thirty times as long as the others; half of the long ones come twice."""
    rng = random.Random(seed)
    ids = Ids()
    entries, seen = [], []
    for _ in range(count):
        if rng.random() >= 0.1:
            tokens = rng.randrange(64, 384)
            entries.append(request(ids.fresh(tokens), tokens, short_answer(rng)))
            continue
        body = seen.pop(0) if len(seen) > 4 else None
        if body is None:
            body = ids.fresh(rng.randrange(96, 128) * BLOCK)
            if rng.random() < 2 / 3:
                seen.append(body)
        blocks = body + ids.fresh(128)
        entries.append(request(blocks, len(blocks) * BLOCK, short_answer(rng)))
    return poisson(rng, entries, rate)


def bursts(seed, count, rate):
    """64 requests within 20 ms, again and again, and nothing in between; half of a burst begins with one of
    eight system prompts."""
    size, within_s = 64, 0.02
    rng = random.Random(seed)
    ids = Ids()
    entries = []
    for number in range(count):
        prefix = ids.text(rng.randrange(8), 8 * BLOCK) if rng.random() < 0.5 else []
        own = rng.randrange(64, 1024)
        entry = request(prefix + ids.fresh(own), len(prefix) * BLOCK + own, short_answer(rng))
        entry["at"] = number // size * (size / rate) + number % size * (within_s / size)
        entries.append(entry)
    return entries


def long_among_chats(seed, count, rate):
    """Conversations of short turns, and among them three of a hundred prompts of 32k tokens (4,096 here) about
    something else each."""
    rng = random.Random(seed)
    entries = multi_turn(seed, count, rate)
    for number, entry in enumerate(entries):
        if rng.random() < 0.03:
            # Below 0: names that no conversation has.
            blocks = [-1 - 64 * number - i for i in range(64)]
            entry |= request(blocks, 64 * BLOCK, short_answer(rng))
    return entries


def long_answers(seed, count, rate):
    """Short prompts with answers of ten to several hundred tokens, 55 on average."""
    rng = random.Random(seed)
    ids = Ids()
    entries = []
    for _ in range(count):
        tokens = rng.randrange(32, 320)
        entries.append(request(ids.fresh(tokens), tokens, 10 + length(rng, 3.45, 0.9, 400)))
    return poisson(rng, entries, rate)


def agents(seed, count, rate):
    """Sessions of four agents. Those of an agent share its long instructions and tools. A turn adds little to a long
    history; after two of five turns several tool calls go out at once, each with the history and a little of its
    own, and the next turn brings what came of them."""
    rng = random.Random(seed)
    ids = Ids()
    entries, at = [], 0.0
    while len(entries) < 2 * count:
        agent = rng.randrange(4)
        history = ids.text(agent, (24 + 4 * agent) * BLOCK) + ids.fresh(rng.randrange(64, 512))
        when = at
        for _ in range(rng.randrange(4, 13)):
            calls = rng.randrange(2, 5) if rng.random() < 0.4 else 1
            for _ in range(calls):
                own = ids.fresh(rng.randrange(16, 128)) if calls > 1 else []
                blocks = history + own
                entry = request(blocks, len(blocks) * BLOCK, rng.randrange(2, 16))
                entry["at"] = when
                entries.append(entry)
            history = history + ids.fresh(calls * rng.randrange(32, 160))
            when += 0.25 + rng.expovariate(1 / 0.4)
        at += rng.expovariate(rate / 13)
    return from_the_middle(entries, count, rate)
