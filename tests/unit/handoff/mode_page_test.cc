// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/state_machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace baton::handoff {
namespace {

std::string_view yes_no(bool yes) { return yes ? "yes" : "no"; }

std::string_view after_leaving(WhenAbandoned what) {
  switch (what) {
    case WhenAbandoned::Complete:
      return "completed or released";
    case WhenAbandoned::AwaitPrefill:
      return "completed, after the prefill's answer";
    case WhenAbandoned::DropDecode:
      break;
  }
  return "decode closed at once";
}

std::string row_of(const ModeRules& rules) {
  return fmt::format("\n| `{}` | {} | {} | {} | {} | {} | {} |\n", model::to_string(rules.mode),
                     rules.order == LegOrder::PrefillFirst ? "prefill first" : "together",
                     yes_no(rules.keeps_blocks), yes_no(rules.prefill_may_answer),
                     yes_no(rules.decode_may_prefill), yes_no(rules.release_in_doubt),
                     after_leaving(rules.when_abandoned));
}

TEST(ModePage, SaysOfEveryModeWhatTheMachineKnows) {
  std::ifstream in(BATON_SOURCE_DIR "/docs/prefill-router.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const ModeRules& rules : mode_table()) {
    EXPECT_NE(page.find(row_of(rules)), page.npos)
        << "docs/prefill-router.md lacks" << row_of(rules);
  }
}

}  // namespace
}  // namespace baton::handoff
