#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check accepts a small sound tree, and refuses it once the rule it guards is broken."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

import check_docs
import check_format
import check_layers
import check_locks
import check_pairs
import check_shell
import check_sizes
import check_tasks
import check_telemetry
import check_text
import tree

ALL = (
    check_docs,
    check_format,
    check_layers,
    check_locks,
    check_pairs,
    check_shell,
    check_sizes,
    check_tasks,
    check_telemetry,
    check_text,
)

CPP_HEAD = "// SPDX-License-Identifier: Apache-2.0\n// SPDX-FileCopyrightText: The Baton authors\n"
SCRIPT_HEAD = "# SPDX-License-Identifier: Apache-2.0\n"

LAYER_TABLE = """# Layers

| layer | folder | owns |
|---|---|---|
| 3 | `scheduling/policy/` | choice |
| 2 | `wire/` | formats |
| 0 | `core/` | results |
| -1 | `libs/` | libraries |
| – | `tools/sim/` | the simulator |
"""

SOUND = {
    "README.md": "See [the layers](docs/architecture.md#layers) and `src/core/error.cc`.\n",
    "docs/architecture.md": LAYER_TABLE,
    "dev": "#!/usr/bin/env bash\n" + SCRIPT_HEAD + 'echo "$1"\n',
    "src/core/README.md": "# core\n",
    "src/core/error.cc": CPP_HEAD + '#include "core/error.h"\n',
    "src/core/error.h": CPP_HEAD + "#pragma once\n",
    "src/libs/README.md": "# libs\n",
    "src/libs/jinja/README.md": "# jinja\n",
    "src/libs/jinja/CMakeLists.txt": SCRIPT_HEAD + "baton_module(libs_jinja LINK baton_libs_scan)\n",
    "src/libs/jinja/jinja.h": CPP_HEAD + '#pragma once\n#include "libs/scan/json.h"\n',
    "src/libs/scan/README.md": "# scan\n",
    "src/libs/scan/json.h": CPP_HEAD + "#pragma once\n",
    "src/scheduling/policy/README.md": "# policy\n",
    "src/scheduling/policy/CMakeLists.txt": SCRIPT_HEAD
    + "baton_module(scheduling_policy LINK baton_core)\n",
    "src/scheduling/policy/cost.h": CPP_HEAD + '#pragma once\n#include "core/error.h"\n',
    "src/wire/README.md": "# wire\n",
    "src/wire/sse.h": CPP_HEAD + "#pragma once\n",
    "src/tools/sim/README.md": "# sim\n",
    "src/tools/sim/engine.h": CPP_HEAD + '#pragma once\n#include "scheduling/policy/cost.h"\n',
    "tests/unit/core/error_test.cc": CPP_HEAD,
}


class TreeTest(unittest.TestCase):
    """A sound tree to break, in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in SOUND.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def assert_refused(self, check, *words):
        """Exactly one complaint, which names what is wrong."""
        complaints = list(check.check(self.root))
        self.assertEqual(len(complaints), 1, complaints)
        for word in words:
            self.assertIn(word, complaints[0])

    def assert_accepted(self, check):
        self.assertEqual(list(check.check(self.root)), [])


class SoundTreeTest(TreeTest):
    def test_a_sound_tree_passes_every_check(self):
        for check in ALL:
            with self.subTest(check.__name__):
                self.assert_accepted(check)

    def test_build_output_and_installed_packages_are_not_looked_at(self):
        self.write("build/release/made.cc", "\t\n")
        self.write("tests/process/node_modules/some/bad.js", "x  \n")
        self.assert_accepted(check_text)


class LayersTest(TreeTest):
    def include(self, user, target):
        self.write(user, CPP_HEAD + f"#include {target}\n")

    def test_a_lower_layer_must_not_include_a_higher_one(self):
        self.include("src/core/error.h", '"scheduling/policy/cost.h"')
        self.assert_refused(check_layers, "src/core/error.h:3", "core must not include scheduling/policy")

    def test_folders_of_one_layer_do_not_see_each_other(self):
        self.write("src/kvcache/index/table.h", "")
        self.include("src/scheduling/policy/cost.h", '"kvcache/index/table.h"')
        self.write("docs/architecture.md", LAYER_TABLE + "| 3 | `kvcache/index/` | index |\n")
        self.assert_refused(check_layers, "scheduling/policy must not include kvcache/index")

    def test_the_simulator_sees_nothing_above_the_pure_layers(self):
        self.include("src/tools/sim/engine.h", '"engine/adapter.h"')
        self.assert_refused(check_layers, "tools/sim must not include engine")

    def test_only_the_command_line_sees_the_simulator(self):
        self.write("docs/architecture.md", LAYER_TABLE + "| 12 | `cli/` | commands |\n")
        self.include("src/cli/demo.cc", '"tools/sim/engine.h"')
        self.assert_accepted(check_layers)
        self.include("src/scheduling/policy/cost.h", '"tools/sim/engine.h"')
        self.assert_refused(check_layers, "scheduling/policy must not include tools/sim")

    def test_what_a_module_links_follows_the_same_rule(self):
        self.write("src/core/CMakeLists.txt", "baton_module(core\n  LINK baton_scheduling_policy)\n")
        self.assert_refused(check_layers, "src/core/CMakeLists.txt:2", "core must not link scheduling/policy")

    def test_a_pure_folder_must_not_include_asio(self):
        self.include("src/wire/sse.h", "<boost/asio/io_context.hpp>")
        self.assert_refused(check_layers, "wire is pure")

    def test_the_named_exceptions_of_core_may_include_asio(self):
        self.include("src/core/asio.cc", "<boost/asio/impl/src.hpp>")
        self.assert_accepted(check_layers)

    def test_a_library_needs_nothing_of_the_layers(self):
        self.include("src/libs/scan/json.h", '"core/error.h"')
        self.assert_refused(check_layers, "src/libs/scan/json.h:3", "libs must not include core")
        self.include("src/libs/scan/json.h", '"libs/scan/block.h"')
        self.write("src/libs/scan/CMakeLists.txt", "baton_module(libs_scan LINK baton_core)\n")
        self.assert_refused(check_layers, "src/libs/scan/CMakeLists.txt:1", "must not link core")

    def test_a_library_sees_only_the_libraries_it_names(self):
        self.include("src/libs/scan/json.h", '"libs/jinja/jinja.h"')
        self.assert_refused(check_layers, "the library scan must not include libs/jinja/jinja.h")
        self.include("src/libs/scan/json.h", '"libs/scan/block.h"')
        self.write("src/libs/scan/part/CMakeLists.txt", "LINK baton_libs_jinja\n")
        self.assert_refused(check_layers, "src/libs/scan/part/CMakeLists.txt:1", "must not link")

    def test_every_layer_may_include_a_library(self):
        self.include("src/core/error.h", '"libs/jinja/jinja.h"')
        self.include("src/tools/sim/engine.h", '"libs/jinja/jinja.h"')
        self.assert_accepted(check_layers)

    def test_a_new_library_must_say_what_it_sees(self):
        self.write("src/libs/extras/thing.h", "")
        self.assert_refused(check_layers, "src/libs/extras: is not in LIBRARIES")

    def test_an_include_names_its_folder(self):
        self.include("src/core/error.cc", '"error.h"')
        self.assert_refused(check_layers, "folder/file.h")

    def test_a_new_folder_needs_a_layer(self):
        self.write("docs/architecture.md", LAYER_TABLE + "| 3 | `scheduling/policy/` | again |\n")
        self.write("src/extras/thing.h", "")
        complaints = list(check_layers.check(self.root))
        self.assertIn("src/extras: has no layer", complaints[0])

    def test_the_page_must_name_every_folder(self):
        self.write("docs/architecture.md", LAYER_TABLE.replace("| 2 | `wire/` | formats |\n", ""))
        self.assert_refused(check_layers, "lacks `wire/`")

    def test_the_page_must_give_the_same_layer(self):
        self.write("docs/architecture.md", LAYER_TABLE.replace("| 3 |", "| 4 |"))
        self.assert_refused(check_layers, "`scheduling/policy/` stands at 4, in check_layers.py at 3")


class SizesTest(TreeTest):
    def test_length_limits_are_inclusive(self):
        for name, limit in (("a.cc", 600), ("a.h", 300), ("main.cc", 60)):
            with self.subTest(name):
                self.write(f"src/core/{name}", "\n" * limit)
                self.assert_accepted(check_sizes)
                self.write(f"src/core/{name}", "\n" * (limit + 1))
                self.assert_refused(check_sizes, f"src/core/{name}: {limit + 1} lines")
                (self.root / "src/core" / name).unlink()

    def test_vague_names_are_refused_as_words_only(self):
        self.write("src/core/commonwealth.h", "")
        self.assert_accepted(check_sizes)
        self.write("src/core/string_utils.h", "")
        self.assert_refused(check_sizes, "string_utils.h", "'utils'")


class PairsTest(TreeTest):
    def test_a_source_file_needs_its_test(self):
        self.write("src/core/clock.cc", "")
        self.assert_refused(check_pairs, "src/core/clock.cc", "tests/unit/core/clock_test.cc")

    def test_an_exception_with_a_reason_excuses(self):
        self.write("src/core/clock.cc", "")
        self.write("tests/lint/unpaired.txt", "# comment\n\ncore/clo*  the kernel's clock\n")
        self.assert_accepted(check_pairs)

    def test_an_exception_needs_a_reason(self):
        self.write("src/core/clock.cc", "")
        self.write("tests/lint/unpaired.txt", "core/clock.cc\n")
        self.assert_refused(check_pairs, "needs a reason")

    def test_an_exception_that_is_no_longer_needed_is_refused(self):
        self.write("tests/lint/unpaired.txt", "core/error.cc  trivial\n")
        self.assert_refused(check_pairs, "needs no excuse")
        self.write("tests/lint/unpaired.txt", "core/gone.cc  trivial\n")
        self.assert_refused(check_pairs, "does not exist")

    def test_a_source_file_begins_with_its_header(self):
        self.write("src/core/error.cc", CPP_HEAD + '#include <string>\n#include "core/error.h"\n')
        self.assert_refused(check_pairs, "src/core/error.cc", '#include "core/error.h"')

    def test_each_folder_needs_a_short_readme(self):
        self.write("src/core/README.md", "\n" * 41)
        self.assert_refused(check_pairs, "src/core/README.md: 41 lines")
        (self.root / "src/core/README.md").unlink()
        self.assert_refused(check_pairs, "src/core: lacks a README.md")

    def test_each_library_needs_a_short_readme(self):
        (self.root / "src/libs/jinja/README.md").unlink()
        self.assert_refused(check_pairs, "src/libs/jinja: lacks a README.md")


class DocsTest(TreeTest):
    def test_a_path_in_backticks_must_exist(self):
        self.write("src/core/README.md", "Run `python3 tests/gone.py`, see `src/core/error.cc:12`.\n")
        self.assert_refused(check_docs, "src/core/README.md:1", "tests/gone.py does not exist")

    def test_patterns_must_match_and_placeholders_are_left_alone(self):
        self.write("CONTRIBUTING.md", "`tests/unit/<folder>/x.cc`, `src/*/README.md`\n")
        self.assert_accepted(check_docs)
        self.write("CONTRIBUTING.md", "`src/*/MANUAL.md`\n")
        self.assert_refused(check_docs, "src/*/MANUAL.md")

    def test_a_relative_link_must_lead_somewhere(self):
        self.write("docs/page.md", "[web](https://example.org/x) [up](../README.md) [gone](gone.md)\n")
        self.assert_refused(check_docs, "docs/page.md:1", "gone.md")

    def test_an_anchor_must_be_a_heading(self):
        self.write("docs/page.md", "# A `name`, and more\n\n[self](#a-name-and-more)\n")
        self.assert_accepted(check_docs)
        self.write("docs/page.md", "[far](architecture.md#threads)\n")
        self.assert_refused(check_docs, "#threads")

    def test_a_unit_test_named_must_exist(self):
        self.write("tests/unit/core/error_test.cc", CPP_HEAD + "TEST(Error,\n     IsOne) {}\n")
        self.write("docs/page.md", "See `Error.IsOne`, not `Error.message` or `models[].name`.\n")
        self.assert_accepted(check_docs)
        self.write("docs/page.md", "See `Error.IsTwo`.\n")
        self.assert_refused(check_docs, "docs/page.md:1", "there is no test Error.IsTwo")

    def test_fenced_blocks_are_examples(self):
        self.write("docs/page.md", "```\n[gone](gone.md) `src/gone`\n```\n")
        self.assert_accepted(check_docs)


class TextTest(TreeTest):
    def test_a_source_file_begins_with_its_licence(self):
        self.write("tests/run.py", "#!/usr/bin/env python3\nprint()\n")
        self.assert_refused(check_text, "tests/run.py:1", "SPDX-License-Identifier")

    def test_a_script_without_suffix_is_known_by_its_first_line(self):
        self.write("dev", "#!/usr/bin/env bash\ntrue\n")
        self.assert_refused(check_text, "dev:1")

    def test_a_cpp_file_also_names_its_authors(self):
        self.write("src/core/error.h", CPP_HEAD.splitlines(keepends=True)[0])
        self.assert_refused(check_text, "src/core/error.h:2", "SPDX-FileCopyrightText")

    def test_white_space_at_the_end_of_a_line_is_refused(self):
        self.write("docs/page.md", "fine\nnot fine \n")
        self.assert_refused(check_text, "docs/page.md:2", "white space")

    def test_tabs_in_cpp_are_refused(self):
        self.write("src/core/error.h", CPP_HEAD + "\tint x;\n")
        self.assert_refused(check_text, "src/core/error.h:3", "tab")

    def test_files_of_tests_are_in_a_directory_of_their_own(self):
        self.write("tests/unit/core/error_test.cc", CPP_HEAD + 'auto f = TempDir() + "f";\n')
        self.assert_refused(check_text, "tests/unit/core/error_test.cc:3", "TemporaryDirectory")

    def test_paths_of_one_machine_are_refused(self):
        for folder in ("work", "home", "root"):
            with self.subTest(folder):
                self.write("docs/page.md", f"in `/{folder}/me/x`\n")
                self.assert_refused(check_text, "docs/page.md:1", "one machine")
        self.write("docs/page.md", "a framework/home/page, ./root/x\n")
        self.assert_accepted(check_text)

    def test_notes_to_self_are_refused(self):
        for word in ("TO" + "DO", "FIX" + "ME"):
            with self.subTest(word):
                self.write("src/core/error.h", CPP_HEAD + f"// {word}: later\n")
                self.assert_refused(check_text, "src/core/error.h:3", "note to self")

    def test_old_names_of_types_are_refused(self):
        for code in ("class Gate {", "struct Seat;", "enum class Verdict {", "using Wish = int;"):
            with self.subTest(code):
                self.write("src/core/error.h", CPP_HEAD + code + "\n")
                self.assert_refused(check_text, "src/core/error.h:3", "is no word of the field")
        for code in ("class AdmissionQueue {", "struct GateDisabled;", "using sim::Lane::x;", "seat(one);"):
            with self.subTest(code):
                self.write("src/core/error.h", CPP_HEAD + code + "\n")
                self.assert_accepted(check_text)

    def test_a_sentence_says_what_it_is_about(self):
        for word in ("Who" + "ever", "No" + "body", "Some" + "body"):
            with self.subTest(word):
                self.write("src/core/error.h", CPP_HEAD + f"int x;  // {word} waits.\n")
                self.assert_refused(check_text, "src/core/error.h:3", f"instead of '{word}'")
                self.write("src/core/error.h", CPP_HEAD)
                self.write("docs/page.md", f"It ends. {word} waits.\n")
                self.assert_refused(check_text, "docs/page.md:1", f"instead of '{word}'")
                self.write("docs/page.md", f"`Test.{word}Waits`, Part::{word}\n")
                self.assert_accepted(check_text)

    def test_registries_are_not_named(self):
        self.write("docs/page.md", "from registry." + "npmjs.org\n")
        self.assert_refused(check_text, "registry")
        self.write("docs/page.md", "\n")
        lock = '{"packages": {"node_modules/a": {"version": "1.0.0", "resolved": "x"}}}\n'
        self.write("tests/process/package-lock.json", lock)
        self.assert_refused(check_text, "node_modules/a", "tied to one registry")


class LocksTest(TreeTest):
    def code(self, text):
        self.write("src/core/error.h", CPP_HEAD + text)

    def test_locks_of_the_standard_library_are_refused(self):
        for name in ("mutex", "shared_mutex", "lock_guard", "unique_lock", "condition_variable"):
            with self.subTest(name):
                self.code(f"std::{name} x;  // all\n")
                self.assert_refused(check_locks, "src/core/error.h:3", f"std::{name} is unknown")

    def test_the_library_of_locks_may_use_them(self):
        self.write("src/libs/locks/mutex.h", CPP_HEAD + "std::mutex mutex_;\n")
        self.assert_accepted(check_locks)

    def test_a_lock_guards_a_member_or_states_what_it_is_for(self):
        self.code("locks::Mutex mutex_;\nint a_ GUARDED_BY(mutex_);\n")
        self.assert_accepted(check_locks)
        self.code("locks::Mutex adding_;  // one adds at a time\n")
        self.assert_accepted(check_locks)
        self.code("locks::Mutex adding_;\nint a_ GUARDED_BY(mutex_);\n")
        self.assert_refused(check_locks, "src/core/error.h:3", "no member is GUARDED_BY(adding_)")

    def test_an_exception_from_the_analysis_needs_a_reason(self):
        self.code("void f() NO_THREAD_SAFETY_ANALYSIS {  // two locks in one order\n")
        self.assert_accepted(check_locks)
        self.code("void f() NO_THREAD_SAFETY_ANALYSIS {\n")
        self.assert_refused(check_locks, "src/core/error.h:3", "needs its reason")


class TasksTest(TreeTest):
    def spawn(self, parameter, line="tasks.spawn(run(job, other));\n"):
        header = f"awaitable<void> run(Job job, {parameter});\n"
        self.write("src/wire/sse.h", CPP_HEAD + header)
        self.write("src/wire/sse.cc", CPP_HEAD + line)

    def test_a_spawned_coroutine_takes_values(self):
        self.spawn("std::string other")
        self.assert_accepted(check_tasks)
        for parameter in ("const Other& other", "std::string_view other", "std::span<const int> other"):
            with self.subTest(parameter):
                self.spawn(parameter)
                self.assert_refused(check_tasks, "src/wire/sse.cc:3", f"`{parameter}`")

    def test_a_comment_may_state_that_a_reference_outlives_the_task(self):
        line = "tasks.spawn(run(job, other));\n"
        self.spawn("Other& other", "// It ends here.\n// Outlives the task: other\n" + line)
        self.assert_accepted(check_tasks)
        self.spawn("Other& other", "// Outlives the task: job\n" + line)
        self.assert_refused(check_tasks, "`Other& other`")

    def test_services_may_be_referred_to(self):
        self.spawn("http_client::UpstreamPool& pool")
        self.assert_accepted(check_tasks)

    def test_a_coroutine_that_is_awaited_may_take_references(self):
        self.spawn("const Other& other", "co_await run(job, other);\n")
        self.assert_accepted(check_tasks)

    def test_a_spawned_lambda_takes_values_and_captures_nothing(self):
        line = "tasks.spawn([{}]({} x) -> awaitable<void> {{ co_await x.go(); }}(job));\n"
        self.spawn("int other", line.format("", "Job"))
        self.assert_accepted(check_tasks)
        self.spawn("int other", line.format("", "Job&"))
        self.assert_refused(check_tasks, "`Job& x`")
        self.spawn("int other", line.format("this", "Job"))
        self.assert_refused(check_tasks, "a spawned lambda that captures")

    def test_a_named_lambda_is_looked_at_too(self):
        self.spawn(
            "int other",
            "const auto ask = [](Job& x) -> awaitable<void> { co_return; };\ntasks.spawn(ask(job));\n",
        )
        self.assert_refused(check_tasks, "src/wire/sse.cc:4", "`Job& x`")

    def test_an_awaitable_is_not_kept(self):
        self.spawn("int other", "awaitable<void> later = run(job, other);\n")
        self.assert_refused(check_tasks, "src/wire/sse.cc:3", "is awaited in the expression")

    def test_tasks_are_started_by_their_group(self):
        self.spawn("int other", "asio::co_spawn(io, run(job, other), asio::detached);\n")
        self.assert_refused(check_tasks, "src/wire/sse.cc:3", "TaskGroup::spawn")


class TelemetryTest(TreeTest):
    METRICS = """# Metrics

| metric | type | labels | meaning |
|---|---|---|---|
| `baton_legs_total` | counter | `role` | Legs. |
| `baton_open` | gauge | none | Open. |
"""
    LOGS = """# Logs

| event | level | fields | when |
|---|---|---|---|
| `stopped` | info | none | At the end. |
| `request` | info | below | After each. |

| field | meaning |
|---|---|
| `id` | Which. |
"""
    CODE = """
  metrics.counter("baton_legs_total", "Legs.", {{"role", role}});
  metrics.gauge(
      "baton_open", "Open.");
  log_.info("stopped", {});
  options.log->info("request",
                    {{"id", id}});
"""

    def setUp(self):
        super().setUp()
        self.write("docs/metrics.md", self.METRICS)
        self.write("docs/logging.md", self.LOGS)
        self.write("src/core/error.cc", CPP_HEAD + self.CODE)

    def rewrite(self, name, old, new):
        self.write(name, (self.root / name).read_text(encoding="utf-8").replace(old, new))

    def test_pages_that_match_the_code_are_accepted(self):
        self.assert_accepted(check_telemetry)

    def test_a_metric_without_a_row_is_refused(self):
        self.rewrite("docs/metrics.md", "| `baton_open` | gauge | none | Open. |\n", "")
        self.assert_refused(check_telemetry, "docs/metrics.md", "lacks baton_open")

    def test_a_row_without_a_metric_is_refused(self):
        self.rewrite("src/core/error.cc", '"baton_open"', '"other"')
        self.assert_refused(check_telemetry, "baton_open is written nowhere")

    def test_the_type_of_a_metric_must_be_right(self):
        self.rewrite("docs/metrics.md", "| gauge |", "| counter |")
        self.assert_refused(check_telemetry, "baton_open is a gauge, not a counter")

    def test_labels_must_be_right(self):
        self.rewrite("docs/metrics.md", "`role`", "`role` `model`")
        self.assert_refused(check_telemetry, "baton_legs_total does not have `model`")

    def test_a_metric_whose_series_end_needs_its_row_too(self):
        for call, kind in (
            ("gauge", "gauge"),
            ("collect", "gauge"),
            ("held_share", "gauge"),
            ("collect_counts", "counter"),
            ("held_counter", "counter"),
        ):
            with self.subTest(call):
                code = self.CODE.replace("metrics.gauge(", f"metrics.{call}(").replace("Open.\");", "Open.\");\n}\n")
                self.write("src/core/error.cc", CPP_HEAD + code)
                self.write("docs/metrics.md", self.METRICS.replace("| gauge |", f"| {kind} |"))
                self.assert_accepted(check_telemetry)

    def test_a_log_line_without_a_row_is_refused(self):
        self.rewrite("src/core/error.cc", '"stopped"', '"halted"')
        complaints = list(check_telemetry.check(self.root))
        self.assertEqual(len(complaints), 2, complaints)

    def test_a_new_field_of_the_request_line_needs_a_row(self):
        self.rewrite("src/core/error.cc", '{{"id", id}}', '{{"id", id}, {"rank", rank}}')
        self.assert_refused(check_telemetry, "docs/logging.md", "request lacks `rank`")

    def test_the_simulator_has_metrics_of_its_own(self):
        self.write("src/tools/sim/engine.h", CPP_HEAD + 'metrics.gauge("baton_sim", "Simulated.");\n')
        self.assert_accepted(check_telemetry)


class ToolsTest(TreeTest):
    def test_a_badly_formatted_file_is_refused(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("src/core/error.h", CPP_HEAD + "#pragma once\nint   x;\nint   y;\n")
        self.assert_refused(check_format, "src/core/error.h:4", "./dev format")

    def test_fixing_the_format_satisfies_the_check(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("src/core/error.h", CPP_HEAD + "int   x;\n")
        self.assertEqual(list(check_format.fix(self.root)), [])
        self.assert_accepted(check_format)

    def test_a_shell_script_with_a_trap_in_it_is_refused(self):
        self.write("dev", "#!/usr/bin/env bash\n" + SCRIPT_HEAD + "rm $1\n")
        self.assert_refused(check_shell, "dev:3", "SC2086")


class CommandLineTest(unittest.TestCase):
    def test_complaints_make_the_exit_status_one(self):
        for complaints, status in (([], 0), (["wrong"], 1)):
            with self.subTest(status), self.assertRaises(SystemExit) as ended:
                with unittest.mock.patch("sys.argv", ["check"]), unittest.mock.patch("builtins.print"):
                    tree.main("check", lambda root, lines=complaints: iter(lines))
            self.assertEqual(ended.exception.code, status)


if __name__ == "__main__":
    unittest.main()
