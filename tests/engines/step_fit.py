# SPDX-License-Identifier: Apache-2.0
"""The step model of `baton sim` (src/tools/sim/step_model.h), fitted to measured times of first tokens. Pure.

A cell is {"prompts", "tokens", "sent_ms", "last_ms", "mean_ms"}: so many prompts of so many tokens each,
when each was sent after the first, the time from the first sent to the last first token, and the mean
time of a prompt to its first token.
"""

import dataclasses
import math
import random
from typing import NamedTuple


class Steps(NamedTuple):
    """A request takes request_ms outside of steps; the others are flags of `baton sim`."""
    request_ms: float
    step_ms: float  # --decode-ms
    sequence_ms: float  # --decode-ms-per-seq
    floor_ms: float  # --step-floor-ms
    token_ms: float  # 1000 / --prefill-tokens-per-second
    pair_ns: float  # --attention-ns-per-pair

    def duration(self, pieces):
        """Of a step that computes these pieces (tokens, tokens before them) of prompts."""
        compute = max(self.floor_ms, self.token_ms * sum(tokens for tokens, _ in pieces))
        pairs = sum(tokens * (before + tokens / 2) for tokens, before in pieces)
        return self.step_ms + self.sequence_ms * len(pieces) + compute + self.pair_ns * 1e-6 * pairs


@dataclasses.dataclass
class Prediction:
    last_ms: float
    mean_ms: float
    pieces: list  # of each step


def predict(steps, cell, budget):
    """What the scheduler makes of a cell: as many tokens in a step as the budget allows, in the order of
    arrival, a prompt in pieces where it does not fit; who comes during a step joins the next one."""
    length, arrivals = cell["tokens"], cell["sent_ms"]
    done, first = [0] * len(arrivals), [None] * len(arrivals)
    history, clock = [], 0.0
    while None in first:
        open_prompts = [i for i, time in enumerate(first) if time is None]
        clock = max(clock, arrivals[open_prompts[0]])
        left, pieces = budget, []
        for i in open_prompts:
            size = min(length - done[i], left)
            if arrivals[i] > clock or size == 0:
                break
            pieces.append((size, done[i]))
            left -= size
            done[i] += size
        clock += steps.duration(pieces)
        history.append(pieces)
        for i in open_prompts:
            if done[i] == length:
                first[i] = clock
    waits = [steps.request_ms + end - start for end, start in zip(first, arrivals)]
    return Prediction(steps.request_ms + first[-1] - arrivals[0], sum(waits) / len(waits), history)


def loss(steps, cells, budget):
    """The mean error, in units of what a measurement is off by: a millisecond and a percent. Beyond that
    it grows with the error and not its square, so that a cell that was disturbed, or packed otherwise,
    does not decide."""
    total = 0.0
    for cell in cells:
        prediction = predict(steps, cell, budget)
        for got, wanted in ((prediction.last_ms, cell["last_ms"]), (prediction.mean_ms, cell["mean_ms"])):
            total += math.hypot((got - wanted) / (1 + 0.01 * wanted), 1)
    return total / (2 * len(cells))


def nelder_mead(function, start, spread, rounds):
    """The textbook's: (value, point) of the lowest that was found."""
    corners = [list(start)] + [[x + (spread if i == k else 0) for k, x in enumerate(start)]
                               for i in range(len(start))]
    simplex = sorted((function(corner), corner) for corner in corners)
    for _ in range(rounds):
        worst = simplex[-1][1]
        center = [sum(x) / (len(simplex) - 1) for x in zip(*(point for _, point in simplex[:-1]))]

        def along(factor):
            point = [c + factor * (c - w) for c, w in zip(center, worst)]  # noqa: B023  # used at once
            return function(point), point

        tried = along(1)
        if tried < simplex[0]:
            tried = min(tried, along(2))
        elif tried >= simplex[-2]:
            tried = min(tried, along(0.5 if tried < simplex[-1] else -0.5))
        if tried < simplex[-1]:
            simplex[-1] = tried
        else:
            best = simplex[0][1]
            shrunk = [[(a + b) / 2 for a, b in zip(best, point)] for _, point in simplex[1:]]
            simplex[1:] = [(function(point), point) for point in shrunk]
        simplex.sort()
    return simplex[0]


def fit(cells, budget, starts=6, rounds=400):
    """The steps that explain the cells best. Constants are positive, so their logarithms are searched."""
    def value(point):
        return loss(Steps(*map(math.exp, point)), cells, budget)

    alone = sorted((cell for cell in cells if cell["prompts"] == min(c["prompts"] for c in cells)),
                   key=lambda cell: cell["tokens"])
    short, long = alone[0], alone[-1]
    token_ms = max((long["last_ms"] - short["last_ms"]) / max(long["tokens"] - short["tokens"], 1), 1e-4)
    guess = Steps(request_ms=0.05 * short["last_ms"], step_ms=0.2 * short["last_ms"],
                  sequence_ms=0.05 * short["last_ms"], floor_ms=0.7 * short["last_ms"], token_ms=token_ms,
                  pair_ns=0.1e6 * token_ms / long["tokens"])
    chance, found = random.Random(1), []
    for _ in range(starts):
        point = [math.log(x) + chance.uniform(-1, 1) for x in guess]
        for spread in (0.5, 0.1, 0.02):  # again from where it ended: a simplex may collapse
            best = nelder_mead(value, point, spread, rounds)
            point = best[1]
        found.append(best)
    return Steps(*map(math.exp, min(found)[1]))


def flags(steps):
    """As `baton sim` takes them."""
    return {"decode-ms": steps.step_ms, "decode-ms-per-seq": steps.sequence_ms, "step-floor-ms": steps.floor_ms,
            "prefill-tokens-per-second": 1000 / steps.token_ms, "attention-ns-per-pair": steps.pair_ns}


def report(steps, cells, budget):
    """Lines for people: the constants, then predicted against measured times of each cell."""
    values = {name: f"{value:.4g}" for name, value in flags(steps).items()}
    yield "flags:   " + " ".join(f"--{name} {value}" for name, value in values.items())
    yield (f"profile: .step_ms = {values['decode-ms']}, .sequence_ms = {values['decode-ms-per-seq']}, "
           f".floor_ms = {values['step-floor-ms']}, "
           f".tokens_per_second = {values['prefill-tokens-per-second']}, "
           f".attention_ns = {values['attention-ns-per-pair']}")
    yield f"beside steps, which is not simulated: {steps.request_ms:.2f} ms a request"
    predictions = [predict(steps, cell, budget) for cell in cells]
    if not any(sum(size for size, _ in pieces) * steps.token_ms < steps.floor_ms
               for prediction in predictions for pieces in prediction.pieces):
        yield "NOTE: no step was short enough to show the floor, which is anything below what they took"
    yield ""
    yield "                        last first token, ms           mean first token, ms"
    yield "prompts  tokens  steps  measured predicted  error     measured predicted  error"
    errors = []
    for cell, prediction in zip(cells, predictions):
        columns = []
        for got, wanted in ((prediction.last_ms, cell["last_ms"]), (prediction.mean_ms, cell["mean_ms"])):
            errors.append(abs(got / wanted - 1))
            columns.append(f"{wanted:9.1f} {got:9.1f} {got / wanted - 1:+6.1%}")
        yield f"{cell['prompts']:7} {cell['tokens']:7} {len(prediction.pieces):6} " + "    ".join(columns)
    yield f"error: at most {max(errors):.1%}, {sum(errors) / len(errors):.1%} on average"
