#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of policies send, to which fleets, and what they make of the figures; without any process."""

import json
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "proxy")]

import generators  # noqa: E402
import layout  # noqa: E402
import load  # noqa: E402
import measurement  # noqa: E402
import plans  # noqa: E402
import tables  # noqa: E402
import traces  # noqa: E402
import workloads  # noqa: E402
from layout import Layout  # noqa: E402
from targets import Failure  # noqa: E402

LINE = {"timestamp": 0, "input_length": 600, "output_length": 32, "hash_ids": [1, 2]}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def trace(self, *lines):
        path = self.folder / "given.jsonl"
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line)
                                  for line in lines))
        return path


class TraceFiles(Folder):
    def test_requests_are_read_in_order_of_time(self):
        rows = traces.read(self.trace(LINE | {"timestamp": 2500.5}, "", LINE | {"timestamp": 10}))
        self.assertEqual([row["at"] for row in rows], [0.01, 2.5005])
        self.assertEqual(rows[0]["input_length"], 600)

    def test_equal_ids_stay_equal_however_large_they_are(self):
        rows = traces.read(self.trace(LINE | {"hash_ids": [2**64, 5]}, LINE | {"hash_ids": [5, 2**64]}))
        first, second = (row["hash_ids"] for row in rows)
        self.assertEqual(first, second[::-1])
        self.assertLess(max(first), 2**32)

    def test_a_wrong_line_is_named_with_what_is_wrong(self):
        without = lambda key: {name: value for name, value in LINE.items() if name != key}
        for line, said in (("{", "JSON object"), ("[]", "JSON object"), ('"x"', "JSON object"),
                           ("[" * 100_000, "JSON object"),
                           (LINE | {"timestamp": -1}, "timestamp"),
                           (LINE | {"timestamp": "0"}, "timestamp"),
                           (LINE | {"timestamp": True}, "timestamp"),
                           ('{"timestamp": NaN}', "timestamp"),
                           ('{"timestamp": 1e400}', "timestamp"),
                           (LINE | {"timestamp": 10**400}, "timestamp"),
                           (without("timestamp"), "timestamp"),
                           (LINE | {"input_length": 0}, "input_length"),
                           (LINE | {"input_length": 1.5}, "input_length"),
                           (without("output_length"), "output_length"),
                           (LINE | {"output_length": -1}, "output_length"),
                           (without("hash_ids"), "hash_ids"), (LINE | {"hash_ids": 7}, "hash_ids"),
                           (LINE | {"hash_ids": ["a"]}, "hash_ids"),
                           (LINE | {"input_length": 2_000_000}, "more than")):
            with self.subTest(line=str(line)[:60]):
                with self.assertRaises(Failure) as raised:
                    traces.read(self.trace(LINE, line))
                self.assertIn("line 2", str(raised.exception))
                self.assertIn(said, str(raised.exception))

    def test_a_file_that_is_no_trace_is_refused(self):
        binary = self.folder / "binary"
        binary.write_bytes(b"\xff\xfe\x00")
        for path, said in ((self.folder / "missing", "cannot be read"), (self.folder, "cannot be read"),
                           (binary, "not text"), (self.trace(""), "no request")):
            with self.subTest(path=path.name), self.assertRaises(Failure) as raised:
                traces.read(path)
            self.assertIn(said, str(raised.exception))

    def test_several_files_are_a_workload_each(self):
        one = self.trace(*[LINE] * 8)
        two = self.folder / "other.jsonl"
        two.write_text(one.read_text())
        names = lambda files: [workload.name for workload in workloads.trace_workloads(files)]
        self.assertEqual(names([one]), ["trace"])
        self.assertEqual(names([one, two]), ["trace given", "trace other"])
        with self.assertRaises(Failure):
            names([one, one])


class Samples(unittest.TestCase):
    def rows(self, count, ids=lambda number: [0, number // 3, number], step_s=3):
        return [{"at": number // 10 * step_s, "input_length": 1200, "output_length": 32,
                 "hash_ids": ids(number)} for number in range(count)]

    def test_have_the_number_and_the_rate_that_was_asked_for(self):
        entries = traces.sample(self.rows(900), 1, 100, 50)
        self.assertEqual(len(entries), 100)
        self.assertAlmostEqual(entries[-1]["at"], 100 / 50)
        self.assertEqual(entries[0]["at"], 0)
        self.assertTrue(all(a["at"] <= b["at"] for a, b in zip(entries, entries[1:])))
        self.assertEqual({entry["input_length"] for entry in entries}, {1200 // traces.SCALE})

    def test_differ_from_seed_to_seed_and_are_the_same_for_the_same(self):
        rows = self.rows(900)
        self.assertEqual(traces.sample(rows, 1, 50, 10), traces.sample(rows, 1, 50, 10))
        self.assertNotEqual(traces.sample(rows, 1, 50, 10), traces.sample(rows, 2, 50, 10))

    def test_keep_conversations_whole(self):
        entries = traces.sample(self.rows(900), 1, 300, 50)
        turns = {}
        for entry in entries:
            turns[entry["hash_ids"][1]] = turns.get(entry["hash_ids"][1], 0) + 1
        self.assertGreater(sum(number == 3 for number in turns.values()), 0.9 * len(turns))

    def test_of_a_small_trace_are_all_of_it(self):
        self.assertEqual(len(traces.sample(self.rows(30), 1, 100, 50)), 30)

    def test_of_one_endless_conversation_end(self):
        self.assertEqual(len(traces.sample(self.rows(900, lambda _: [0, 1]), 1, 100, 50)), 100)

    def test_are_spread_evenly_where_all_came_at_once(self):
        entries = traces.sample(self.rows(40, step_s=0), 1, 40, 10)
        gaps = [b["at"] - a["at"] for a, b in zip(entries, entries[1:])]
        self.assertLess(max(gaps), 0.2)

    def test_need_no_ids(self):
        entries = traces.sample(self.rows(40, lambda _: []), 1, 40, 10)
        self.assertEqual(traces.least_work(entries, 2, 1000, 0), 1200 // traces.SCALE)

    def test_leave_the_requests_they_are_made_of_alone(self):
        rows = self.rows(60)
        before = json.dumps(rows)
        traces.sample(rows, 1, 40, 10)
        self.assertEqual(json.dumps(rows), before)


class WarmUp(unittest.TestCase):
    def test_takes_longer_and_leaves_the_rest_as_it_was(self):
        entries = [{"at": float(at)} for at in (0, 1, 2, 3, 5)]
        warmed = traces.warm_up_slowly(entries, 2, 2)
        self.assertEqual([entry["at"] for entry in warmed], [0, 2, 4, 5, 7])


class LeastWork(unittest.TestCase):
    def test_is_all_of_what_is_new(self):
        entries = [traces.request([number], 64, 1) for number in range(20)]
        self.assertEqual(traces.least_work(entries, 4, 10_000, 0), 64)

    def test_does_not_count_what_was_there(self):
        entries = [traces.request([1, 2, 3], 192, 1) for _ in range(20)]
        # All but the first find all full blocks but the last, which has the token that is asked for.
        self.assertEqual(traces.least_work(entries, 4, 10_000, 1), 64)

    def test_forgets_what_the_cache_has_no_room_for(self):
        entries = [traces.request([number % 3], 64, 1) | {"input_length": 65} for number in range(30)]
        self.assertEqual(traces.least_work(entries, 1, 3 * 64, 3), 1)
        self.assertEqual(traces.least_work(entries, 1, 2 * 64, 3), 65)


class Generated(unittest.TestCase):
    KINDS = (generators.chat_like, generators.shared_system_prompt, generators.multi_turn,
             generators.all_distinct, generators.hot_document, generators.long_and_short,
             generators.bursts, generators.long_among_chats, generators.long_answers, generators.agents)

    def test_are_so_many_in_order_and_at_the_rate(self):
        for kind in self.KINDS:
            with self.subTest(kind.__name__):
                entries = kind(3, 600, 60)
                self.assertEqual(len(entries), 600)
                times = [entry["at"] for entry in entries]
                self.assertEqual(times, sorted(times))
                self.assertEqual(times[0], 0)
                self.assertAlmostEqual(times[-1], 10, delta=1.5)

    def test_have_an_id_for_each_block_of_their_prompt(self):
        for kind in self.KINDS:
            with self.subTest(kind.__name__):
                for entry in kind(1, 300, 60):
                    self.assertGreaterEqual(entry["output_length"], 1)
                    self.assertGreaterEqual(len(entry["hash_ids"]),
                                            entry["input_length"] // traces.BLOCK)

    def test_are_the_same_for_the_same_seed(self):
        for kind in self.KINDS:
            with self.subTest(kind.__name__):
                self.assertEqual(kind(1, 200, 60), kind(1, 200, 60))
                self.assertNotEqual(kind(1, 200, 60), kind(2, 200, 60))

    def test_agents_call_several_tools_at_once_with_the_same_history(self):
        entries = generators.agents(1, 600, 60)
        together = [(a, b) for a, b in zip(entries, entries[1:]) if a["at"] == b["at"]]
        self.assertGreater(len(together), 100)
        for a, b in together:
            shared = min(len(a["hash_ids"]), len(b["hash_ids"])) - 2
            self.assertEqual(a["hash_ids"][:shared], b["hash_ids"][:shared])

    def test_bursts_leave_time_between_them(self):
        times = [entry["at"] for entry in generators.bursts(1, 128, 32)]
        self.assertLess(times[63] - times[0], 0.03)
        self.assertEqual(times[64], 2)


class Layouts(unittest.TestCase):
    def flags(self, shape, worker="prefill-1", known="", speed=1000):
        with mock.patch.object(layout, "flags_known", lambda _: known):
            return shape.engine_flags("baton", worker, speed)

    def test_workers_and_their_capacity(self):
        shape = Layout(prefill=2, decode=1, slowness={"prefill-2": 2, "decode-1": 9})
        self.assertEqual(shape.workers(), ["prefill-1", "prefill-2", "decode-1"])
        self.assertEqual(shape.capacity(), 1.5)
        self.assertEqual(Layout(prefill=0, decode=0, aggregated=8).capacity(), 8)

    def test_a_floor_is_a_floor_where_the_simulator_knows_it(self):
        shape = Layout(step_ms=0, floor_ms=40)
        flags = self.flags(shape, known="--step-floor-ms FLOAT")
        self.assertEqual((flags["decode-ms"], flags["step-floor-ms"]), (0, 40))
        flags = self.flags(shape)
        self.assertEqual(flags["decode-ms"], 40)
        self.assertNotIn("step-floor-ms", flags)

    def test_attention_is_the_share_of_a_long_prompt(self):
        shape = Layout(attention=0.5)
        ns = self.flags(shape, known="--attention-ns-per-pair")["attention-ns-per-pair"]
        tokens_s = layout.LONG_PROMPT / 1000
        self.assertAlmostEqual(ns * layout.LONG_PROMPT**2 / 2 / 1e9, 0.5 * tokens_s)
        self.assertNotIn("attention-ns-per-pair", self.flags(shape))

    def test_a_workers_own_flags_win(self):
        shape = Layout(flags={"decode": {"max-seqs": 8, "decode-ms": 7}, "decode-2": {"max-seqs": 4}})
        self.assertEqual(self.flags(shape, "decode-1")["max-seqs"], 8)
        self.assertEqual(self.flags(shape, "decode-2")["max-seqs"], 4)
        self.assertEqual(self.flags(shape, "decode-2")["decode-ms"], 7)
        self.assertNotIn("max-seqs", self.flags(shape, "prefill-1"))


class Plans(Folder):
    def everything(self):
        return workloads.all_workloads([], self.folder / "missing")

    def test_every_workload_makes_one(self):
        for workload in self.everything():
            with self.subTest(workload.name):
                plan = plans.make(workload, self.folder, 1, 3)
                self.assertGreater(plan.speed, 0)
                self.assertAlmostEqual(plan.measured_s, 3 * workload.length, delta=1.5)
                for _, change in plan.changes:
                    self.assertIn(change.worker, workload.layout.workers())
                for worker in workload.layout.slowness:
                    self.assertIn(worker, workload.layout.workers())
                if plan.requests:
                    sent = plan.flags["trace"].read_text().splitlines()
                    self.assertEqual(len(sent), plan.flags["warmup"] + plan.requests)
                    answers = [json.loads(line)["output_length"] for line in sent]
                    self.assertEqual(sum(answers[plan.flags["warmup"]:]), plan.answer_tokens)

    def test_engines_are_as_fast_as_makes_it_the_load(self):
        usual = workloads.Workload("x", "", generators.all_distinct, load=0.5)
        slow = replace(usual, layout=Layout(slowness={"prefill-1": 2}))
        plan = plans.make(usual, self.folder, 1, 3)
        self.assertAlmostEqual(4 * plan.speed * 0.5, 100 * plan.new_tokens)
        self.assertAlmostEqual(plans.make(slow, self.folder, 1, 3).speed, plan.speed * 4 / 3.5)

    def test_a_change_comes_in_the_measured_time(self):
        workload = next(w for w in self.everything() if w.changes)
        plan = plans.make(workload, self.folder, 1, 4)
        fleet = mock.Mock()
        (at, act), = plan.actions(fleet)
        self.assertAlmostEqual(at, plan.warmup_s + plan.measured_s / 2)
        act()
        fleet.slow_down.assert_called_once_with("prefill-2", 4)

    def test_a_cold_start_has_no_warm_up(self):
        workload, = workloads.chosen(self.everything(), ["cold-start"])
        plan = plans.make(workload, self.folder, 1, 3)
        self.assertEqual((plan.warmup_s, plan.flags["warmup"]), (0, 0))

    def test_a_trace_that_is_too_short_is_refused_and_a_short_one_is_not(self):
        for count, good in ((1, False), (8, True)):
            path = self.trace(*[LINE | {"timestamp": 100 * i} for i in range(count)])
            workload, = workloads.trace_workloads([path])
            if good:
                self.assertEqual(plans.make(workload, self.folder, 1, 3).requests, 6)
            else:
                self.assertRaises(Failure, plans.make, workload, self.folder, 1, 3)

    def test_an_unknown_workload_is_refused_with_those_there_are(self):
        self.assertEqual(len(workloads.chosen(self.everything(), [])), len(self.everything()))
        with self.assertRaisesRegex(Failure, "no workload 'x'; there are: trace, shared"):
            workloads.chosen(self.everything(), ["x"])


class Completeness(unittest.TestCase):
    PLAN = mock.Mock(requests=10, answer_tokens=50)

    def summary(self, tokens=50, **counts):
        usual = {"completed": 10, "failed": 0, "refused": 0, "cut": 0, "not_sent": 0}
        return {"requests": usual | counts, "output_tokens": tokens, "errors": {}}

    def test_every_answer_must_be_there_and_whole(self):
        measurement.check_complete(self.PLAN, "kv", self.summary())
        for wrong in ({"failed": 1}, {"refused": 1}, {"cut": 1}, {"not_sent": 1}, {"completed": 9},
                      {"tokens": 49}):
            with self.subTest(wrong), self.assertRaises(Failure):
                measurement.check_complete(self.PLAN, "kv", self.summary(**wrong))

    def test_throughput_is_that_of_the_whole_seconds_of_steady_load(self):
        points = [{"t": t, "completed": completed} for t, completed in enumerate([1, 2, 50, 70, 9, 9])]
        result = {"series": {"width_s": 1, "points": points}, "summary": {"requests_per_s": 5}}
        plan = mock.Mock(warmup_s=1.2, measured_s=3)
        self.assertEqual(measurement.throughput(result, plan), 60)
        plan.measured_s = 0.5
        self.assertEqual(measurement.throughput(result, plan), 5)


class Actions(unittest.TestCase):
    def test_what_fails_or_never_comes_fails_the_run(self):
        def fails():
            raise Failure("no such worker")
        with self.assertRaisesRegex(Failure, "no such worker"):
            with load.on_time([(0, fails)]) as done:
                done.wait(10)
        with self.assertRaisesRegex(Failure, "before its change"):
            with load.on_time([(1000, fails)]):
                pass

    def test_all_happen_in_order(self):
        happened = []
        with load.on_time([(0.01, lambda: happened.append(2)), (0, lambda: happened.append(1))]) as done:
            done.wait(10)
        self.assertEqual(happened, [1, 2])


class Tables(unittest.TestCase):
    def row(self, policy, mean, p99=100, rate=50, workload="trace", **more):
        return {"workload": workload, "policy": policy, "seed": 1, "ttft_mean": mean, "ttft_p99": p99,
                "throughput": rate, "balance": 1.1, "decode_balance": None} | more

    def test_ours_is_compared_with_the_best_of_each_figure(self):
        figures = tables.Figures([self.row("ttft", 90, 200, 49), self.row("kv", 100, 400, 40),
                                  self.row("random", 300, 100, 50)])
        self.assertEqual(figures.best_other("trace", "ttft_mean"), ("kv", 0.9))
        self.assertEqual(figures.best_other("trace", "ttft_p99"), ("random", 2))
        self.assertEqual(figures.best_other("trace", "throughput", max), ("random", 0.98))
        found = {goal.text: goal.met() for goal in tables.goals(figures)}
        self.assertEqual(found, {"trace: mean TTFT against kv": True,
                                 "trace: p99 of TTFT against random": False,
                                 "trace: requests/s against random": True})
        line = tables.comparison(figures).splitlines()[-1]
        self.assertEqual(line, "| trace | 90 | 100 kv | 0.90 | 200 | 2.00 random | 49.0 | 0.98 random | "
                               "1.10 | – |")

    def test_figures_are_means_over_the_seeds(self):
        figures = tables.Figures([self.row("ttft", 10), self.row("ttft", 30), self.row("kv", 40)])
        self.assertEqual(figures.best_other("trace", "ttft_mean"), ("kv", 0.5))

    def test_the_earlier_goals_are_those_of_the_workloads_there_were(self):
        rows = [self.row(policy, mean, workload=workload) for workload in ("trace", "agents", "hot document")
                for policy, mean in (("ttft", 103), ("kv", 100), ("round_robin", 300))]
        found = {goal.text: goal.met() for goal in tables.old_goals(tables.Figures(rows))}
        self.assertEqual(found, {
            "mean TTFT of ttft against round_robin on the trace": True,
            "mean TTFT of ttft against kv on the trace": False,
            "trace: mean TTFT of ttft against the best of the others, kv": False,
            "hot document: mean TTFT of ttft against the best of the others, kv": False,
            "hot document: load max/mean of ttft": True})

    def test_without_ours_or_without_others_nothing_is_compared(self):
        self.assertEqual(tables.summary(tables.Figures([self.row("kv", 1), self.row("random", 2)])), [])
        self.assertEqual(tables.summary(tables.Figures([self.row("ttft", 1)])), [])


if __name__ == "__main__":
    unittest.main()
