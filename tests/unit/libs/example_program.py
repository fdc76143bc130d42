# SPDX-License-Identifier: Apache-2.0
"""What the tests of the example programs share: `python3 …_test.py PROGRAM` runs PROGRAM with files that a test writes."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[-1])


class ExampleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def run_program(self, *arguments) -> subprocess.CompletedProcess:
        return subprocess.run(
            [PROGRAM, *map(str, arguments)], capture_output=True, encoding="utf-8", timeout=60
        )

    def assert_prints(self, expected: str, *arguments):
        result = self.run_program(*arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, expected)

    def assert_fails(self, status: int, reason: str, *arguments):
        result = self.run_program(*arguments)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertIn(reason, result.stderr)


def main():
    unittest.main(argv=sys.argv[:-1])
