// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/command.h"
#include "tools/sim/engine_profile.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::sim {
namespace {

using testing::HasSubstr;

Options parse(const std::string& flags) {
  Options options;
  CLI::App app;
  add_command(app, options);
  app.parse("sim " + flags);
  return options;
}

TEST(StepFlags, WithoutAnyStepsAreAsTheyAlwaysWere) {
  const Options options = parse("");
  EXPECT_EQ(options.decode_ms, 2);
  EXPECT_EQ(options.prefill_tokens_per_second, 200000);
  EXPECT_EQ(options.step_floor_ms, 0);
  EXPECT_EQ(options.max_seqs, 256U);
  EXPECT_EQ(options.max_batched_tokens, 8192U);
  EXPECT_EQ(options.block_transfer_ms(), 0);
}

TEST(StepFlags, EachGoesWhereItBelongs) {
  const StepModel model = step_model(
      parse("--decode-ms 1 --decode-ms-per-seq 0.5 --prefill-tokens-per-second 300 "
            "--step-floor-ms 4 --attention-ns-per-pair 5 --decode-ns-per-context-token 6"));
  EXPECT_EQ(model.step_ms, 1);
  EXPECT_EQ(model.sequence_ms, 0.5);
  EXPECT_EQ(model.tokens_per_second, 300);
  EXPECT_EQ(model.floor_ms, 4);
  EXPECT_EQ(model.attention_ns, 5);
  EXPECT_EQ(model.context_ns, 6);
}

TEST(StepFlags, AProfileSetsThemAll) {
  const EngineProfile& profile = *find_profile("l40s-8b");
  const Options options = parse("--profile l40s-8b --block-size 32");
  EXPECT_EQ(step_model(options).floor_ms, profile.step.floor_ms);
  EXPECT_EQ(step_model(options).context_ns, profile.step.context_ns);
  EXPECT_EQ(options.max_seqs, 256U);
  EXPECT_EQ(options.max_batched_tokens, 2048U);
  EXPECT_NEAR(options.block_transfer_ms(), 0.084, 0.001);
}

TEST(StepFlags, OneThatIsGivenOverridesTheProfileWhereverItStands) {
  const EngineProfile& profile = *find_profile("h200-8b");
  for (const std::string flag :
       {"--decode-ms", "--decode-ms-per-seq", "--prefill-tokens-per-second", "--step-floor-ms",
        "--attention-ns-per-pair", "--decode-ns-per-context-token", "--transfer-ms-per-block",
        "--max-seqs", "--max-batched-tokens"}) {
    for (const std::string& flags :
         {flag + " 77 --profile h200-8b", "--profile h200-8b " + flag + " 77"}) {
      const Options options = parse(flags);
      const StepModel model = step_model(options);
      const auto expected = [&flag](const char* name, double value) {
        return flag == name ? 77 : value;
      };
      EXPECT_EQ(model.step_ms, expected("--decode-ms", profile.step.step_ms)) << flags;
      EXPECT_EQ(model.sequence_ms, expected("--decode-ms-per-seq", 0)) << flags;
      EXPECT_EQ(model.tokens_per_second,
                expected("--prefill-tokens-per-second", profile.step.tokens_per_second))
          << flags;
      EXPECT_EQ(model.floor_ms, expected("--step-floor-ms", profile.step.floor_ms)) << flags;
      EXPECT_EQ(model.attention_ns, expected("--attention-ns-per-pair", profile.step.attention_ns))
          << flags;
      EXPECT_EQ(model.context_ns,
                expected("--decode-ns-per-context-token", profile.step.context_ns))
          << flags;
      EXPECT_EQ(options.max_seqs, expected("--max-seqs", profile.max_seqs)) << flags;
      EXPECT_EQ(options.max_batched_tokens,
                expected("--max-batched-tokens", profile.max_batched_tokens))
          << flags;
      EXPECT_NEAR(options.block_transfer_ms(), expected("--transfer-ms-per-block", 0.0419), 1e-4)
          << flags;
    }
  }
}

TEST(StepFlags, AnUnknownProfileIsRefusedWithTheNamesOfAll) {
  try {
    parse("--profile h200");
    ADD_FAILURE() << "it was taken";
  } catch (const CLI::ValidationError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--profile"));
    EXPECT_THAT(error.what(), HasSubstr("'h200'"));
    for (const EngineProfile& profile : engine_profiles()) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(profile.name)));
    }
  }
}

TEST(StepFlags, TimesAreNotNegative) {
  for (const char* flag : {"--step-floor-ms", "--attention-ns-per-pair", "--decode-ms",
                           "--decode-ns-per-context-token", "--transfer-ms-per-block"}) {
    EXPECT_THROW(parse(std::string(flag) + " -1"), CLI::ValidationError) << flag;
  }
}

}  // namespace
}  // namespace baton::sim
