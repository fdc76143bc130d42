# SPDX-License-Identifier: Apache-2.0
"""What frames the figures of a benchmark: the program, the machine, what went wrong, and the files they go to."""

import json
import os
import signal
import sys
from pathlib import Path

import report  # bench/proxy
from fleet import say
from targets import Failure

ROOT = Path(__file__).resolve().parents[2]
BUSY_MACHINE = 0.5


def add_options(parser):
    parser.add_argument("--quick", action="store_true",
                        help="short runs; to see that it works, not for the record")
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="where the JSON result goes; the tables go beside it, as .md")


def names(texts):
    """What was given as A B or as A,B."""
    return [name.strip() for text in texts or [] for name in text.split(",") if name.strip()]


class Record:
    """Made before the run."""

    def __init__(self, name, options):
        self.name, self.quick = name, options.quick
        build = Path(os.environ.get("BATON_BUILD", ROOT / "build" / "release")).resolve()
        self.output = options.output or build / "bench" / f"{name}.json"
        self.baton = build / "baton"
        if not self.baton.exists():
            raise Failure(f"{self.baton} is not there: ./dev bench {name} builds it")
        self.machine, self.warnings = report.Machine(), []
        if self.machine.load_average > BUSY_MACHINE:
            self.warn(f"the machine is busy with other things (load {self.machine.load_average:.1f})")

    def warn(self, text):
        self.warnings.append(text)
        say(f"warning: {text}")

    def opening(self, about):
        """The first paragraphs: what ran where, and what is doubtful about it."""
        machine = self.facts
        parts = [f"`{self.command}` on {machine['date']}. Machine: {machine['cores']} × "
                 f"{machine['cpu'] or machine['architecture']}, {machine['memory_gib']} GiB, kernel "
                 f"{machine['kernel']}; load average before the run "
                 f"{machine['load_average_before']:.2f}, stolen by the hypervisor "
                 f"{machine['steal_percent']} %. {about}"]
        if self.quick:
            parts.append("**Quick run. Not for the record.**")
        return parts + [f"Warning: {warning}." for warning in self.warnings]

    def publish(self, result, about, parts, details=()):
        """Writes the result as JSON and all paragraphs as a page; prints the page without its details."""
        self.facts = self.machine.facts()
        self.command = " ".join([f"./dev bench {self.name}", *sys.argv[1:]])
        result = {"command": self.command, "quick": self.quick, "machine": self.facts,
                  "warnings": self.warnings} | result
        parts = self.opening(about) + list(parts)
        page = self.output.with_suffix(".md")
        self.output.parent.mkdir(parents=True, exist_ok=True)
        self.output.write_text(json.dumps(result, indent=1) + "\n")
        page.write_text("\n\n".join([*parts, *details]) + "\n")
        print("\n\n".join(parts) + "\n")
        say(f"written: {self.output} and {page}")


def run(name, main):
    """Ends as a command should."""
    # As an exception, so that everything started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except Failure as failure:
        sys.exit(f"bench {name}: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
