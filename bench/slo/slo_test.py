#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of a target counts as good, and what it makes of that; without any load."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
BENCH = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCH / folder) for folder in ("slo", "routing", "proxy")]

import outcome  # noqa: E402
import plans  # noqa: E402
import scenarios  # noqa: E402
import settings  # noqa: E402
from targets import Failure  # noqa: E402


def observed(good, completed, refused=0, cut=0, failed=0, not_sent=0):
    summary = {"requests": {"completed": completed, "refused": refused, "cut": cut, "failed": failed,
                            "refused_with_retry_after": refused, "not_sent": not_sent},
               "goodput": {"good": good}, "ttft_ms": {"count": 0}, "itl_ms": {"count": 0},
               "refused_ms": {"count": 0}}
    return mock.Mock(summary=summary, cpu_share=0.5, disturbance=0)


class Rows(unittest.TestCase):
    def row(self, **counts):
        return scenarios.row_of("slo", "80 %", 60, 10, observed(**counts))

    def test_goodput_is_a_share_of_what_the_fleet_can_do(self):
        row = self.row(good=300, completed=400, refused=200)
        self.assertEqual((row["goodput"], row["attainment"], row["sent_per_s"]), (0.5, 0.75, 60))

    def test_who_was_cut_was_served_too_late_and_who_was_refused_was_not_served(self):
        self.assertEqual(self.row(good=100, completed=100, cut=100)["attainment"], 0.5)
        self.assertEqual(self.row(good=100, completed=100, refused=900)["attainment"], 1)
        self.assertIsNone(self.row(good=0, completed=0, refused=10)["attainment"])

    def test_what_could_not_even_be_sent_counts_as_failed(self):
        self.assertEqual(self.row(good=0, completed=1, failed=1, not_sent=2)["failed"], 3)


class Outcomes(unittest.TestCase):
    def found(self, **over):
        usual = {"goodput": 0.5, "attainment": 0.9, "refused": 0, "told": 0, "cut": 0, "failed": 0,
                 "sent_per_s": 30, "ttft_mean": 100, "ttft_p99": 200, "itl_p99": 30,
                 "refused_p99": None, "memory_growth": 1, "memory_mib": 40}
        rows = [{"policy": "slo", "load": name} | usual for name in settings.LOADS]
        for row in rows:
            if row["load"] == settings.OVERLOAD:
                row |= {"refused": 100, "told": 100, "refused_p99": 1.5} | over
        return outcome.Outcome(rows)

    def missed(self, found):
        return [goal.split(":")[1].strip() for goal in found.goals("slo") if "**missed**" in goal]

    def test_each_goal_can_be_missed(self):
        self.assertEqual(self.missed(self.found()), [])
        for over, goal in (({"failed": 1}, "nothing failed"), ({"goodput": 0.44}, "goodput at 1000 %"),
                           ({"told": 99}, "refused with Retry-After"),
                           ({"refused_p99": 11}, "refused with Retry-After"),
                           ({"refused": 0, "told": 0}, "refused with Retry-After"),
                           ({"memory_growth": 1.2}, "memory flat")):
            with self.subTest(over):
                missed = self.missed(self.found(**over))
                self.assertEqual(len(missed), 1)
                self.assertTrue(missed[0].startswith(goal))

    def test_a_slow_recovery_is_missed_and_one_without_an_answer_too(self):
        for load, mean in ((settings.AGAIN, 126), (settings.AGAIN, None), (settings.CALM, None)):
            found = self.found()
            found.row("slo", load)["ttft_mean"] = mean
            self.assertEqual(self.missed(found), ["as before at once"])

    def test_tables_have_every_load(self):
        found = self.found()
        self.assertEqual(len(found.details("slo").splitlines()), 2 + len(settings.LOADS))
        self.assertIn("| slo | 50% |", found.table("goodput"))


class Settings(unittest.TestCase):
    def refusal(self, status, said):
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch("subprocess.run", return_value=mock.Mock(returncode=status, stdout=said)):
            return settings.refusal("baton", Path(folder), {"policy": "ttft", "slo": {}})

    def test_only_an_option_that_the_router_does_not_know_leaves_a_policy_out(self):
        self.assertIsNone(self.refusal(0, "the configuration is good"))
        self.assertIn("'slo'", self.refusal(2, "c.yaml:1: models[0]: unknown key 'slo'; known here: name"))
        self.assertRaises(Failure, self.refusal, 2, "models[0].slo.ttft: not a duration")

    def test_the_other_loads_can_be_planned(self):
        with tempfile.TemporaryDirectory() as folder:
            for workload in settings.SCENARIOS:
                plan = plans.make(workload, Path(folder), 1, 3)
                self.assertEqual(plan.targets(), {"slo-ttft": 300, "slo-itl": 40})


if __name__ == "__main__":
    unittest.main()
