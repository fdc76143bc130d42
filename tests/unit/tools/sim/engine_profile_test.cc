// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/engine_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <string>
#include <utility>

namespace baton::sim {
namespace {

// GPU times of one step in ms, measured on an H200: dense transformers of these sizes in bf16 with
// CUDA graphs; of 70B one GPU of four, without what they tell each other. What a server adds is not
// in them.
constexpr std::array kPromptLengths{16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::array kPromptCounts{1, 2, 4, 8, 16, 32, 64};  // of 128 tokens each
constexpr std::array<std::pair<int, int>, 9> kBatches{       // sequences, context of each
                                                      {{1, 1024},
                                                       {16, 1024},
                                                       {64, 1024},
                                                       {128, 1024},
                                                       {256, 1024},
                                                       {1, 4096},
                                                       {64, 4096},
                                                       {128, 4096},
                                                       {256, 4096}}};

struct Measured {
  std::string_view profile;
  std::array<double, kPromptLengths.size()> one_prompt;
  std::array<double, kPromptCounts.size()> prompts_of_128;
  std::array<double, kBatches.size()> decode;
};

void PrintTo(const Measured& measured, std::ostream* out) { *out << measured.profile; }

constexpr std::array kMeasured{
    Measured{"h200-8b",
             {5.1, 5.4, 5.8, 7.6, 13.1, 25.1, 50.8, 106, 228, 527},
             {5.9, 7.7, 12.5, 24.8, 48.6, 96.9, 195},
             {4.9, 5.5, 7.2, 9.5, 15.1, 5.0, 12.8, 20.6, 37.1}},
    Measured{"h200-32b",
             {18.3, 19.2, 21.2, 31.0, 57.2, 111, 221, 451, 935, 2022},
             {21.2, 31.0, 56.7, 111, 217, 429, 854},
             {17.9, 19.0, 22.8, 28.6, 45.3, 18.2, 33.9, 50.4, 87.8}},
    Measured{"h200-70b-tp4",
             {12.8, 13.2, 13.7, 18.8, 33.2, 61.2, 123, 250, 527, 1114},
             {13.8, 18.8, 32.7, 59.8, 120, 238, 479},
             {12.4, 13.1, 14.2, 16.0, 23.4, 12.4, 17.7, 22.9, 36.9}},
};

constexpr double kTolerance = 0.10;
// At 256 tokens reading the weights and computing take about as long, and neither hides wholly
// behind the other: a step takes up to a fifth longer than the longer of the two. No max() meets
// these cells without being too slow elsewhere; 8B and 70B are up to 15 % below.
constexpr int kKneeTokens = 256;
constexpr double kKneeTolerance = 0.15;

double tolerance(int prompt_tokens) {
  return prompt_tokens == kKneeTokens ? kKneeTolerance : kTolerance;
}

class EngineProfileTest : public testing::TestWithParam<Measured> {
 protected:
  EngineProfileTest() : model_(find_profile(GetParam().profile)->step) {
    EXPECT_GE(model_.step_ms, 1);  // some milliseconds
    EXPECT_LE(model_.step_ms, 5);
    model_.step_ms = 0;
  }
  ~EngineProfileTest() override { EXPECT_LT(error_sum_ / cells_, 0.065); }

  void expect_near(const StepLoad& load, double measured, double tolerated,
                   const std::string& what) {
    const double error = model_.ms(load) / measured - 1;
    EXPECT_LE(std::abs(error), tolerated)
        << what << ": " << model_.ms(load) << " ms, measured " << measured << " ms";
    error_sum_ += std::abs(error);
    ++cells_;
  }

  StepModel model_;
  double error_sum_ = 0;
  int cells_ = 0;
};

TEST_P(EngineProfileTest, TakesAsLongAsWasMeasured) {
  const Measured& measured = GetParam();
  for (std::size_t i = 0; i < kPromptLengths.size(); ++i) {
    StepLoad load;
    load.add_piece(static_cast<std::uint64_t>(kPromptLengths[i]), 0);
    expect_near(load, measured.one_prompt[i], tolerance(kPromptLengths[i]),
                std::to_string(kPromptLengths[i]) + " tokens");
  }
  for (std::size_t i = 0; i < kPromptCounts.size(); ++i) {
    StepLoad load;
    for (int n = 0; n < kPromptCounts[i]; ++n) load.add_piece(128, 0);
    expect_near(load, measured.prompts_of_128[i], tolerance(128 * kPromptCounts[i]),
                std::to_string(kPromptCounts[i]) + " prompts");
  }
  for (std::size_t i = 0; i < kBatches.size(); ++i) {
    const auto [sequences, context] = kBatches[i];
    StepLoad load;
    for (int n = 0; n < sequences; ++n) load.add_decode(static_cast<std::uint64_t>(context));
    expect_near(load, measured.decode[i], kTolerance,
                std::to_string(sequences) + " at " + std::to_string(context));
  }
}

INSTANTIATE_TEST_SUITE_P(H200, EngineProfileTest, testing::ValuesIn(kMeasured),
                         [](const auto& test) {
                           std::string name(test.param.profile);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// An L40S by its data sheet: 0.86 TB/s for 16 GB of weights and 128 KiB of KV a token, and compute
// of 362 TFLOPS where an H200 has 989.
TEST(EngineProfiles, TheL40sIsAnH200ByBandwidthAndCompute) {
  const StepModel& l40s = find_profile("l40s-8b")->step;
  const StepModel& h200 = find_profile("h200-8b")->step;
  EXPECT_NEAR(l40s.floor_ms, 16.0 / 0.86, 0.5);
  EXPECT_NEAR(l40s.context_ns, 131072 / 860.0, 1);
  EXPECT_NEAR(h200.tokens_per_second / l40s.tokens_per_second, 989.0 / 362, 0.01);
  EXPECT_NEAR(l40s.attention_ns / h200.attention_ns, 989.0 / 362, 0.01);
}

// vLLM on two cores: a prompt of so many tokens alone, in ms; a request took 1 ms outside of steps.
TEST(EngineProfiles, TheCpuIsAMeasuredServer) {
  for (const auto& [tokens, measured] :
       {std::pair{64, 19.6}, {128, 20.6}, {256, 22.3}, {512, 27.4}, {1000, 38.6}, {1500, 53.8}}) {
    StepLoad load;
    load.add_piece(static_cast<std::uint64_t>(tokens), 0);
    EXPECT_NEAR((1 + find_profile("cpu")->step.ms(load)) / measured, 1, 0.15) << tokens;
  }
}

TEST(EngineProfiles, HaveNamesOfTheirOwnAndAreWhole) {
  std::set<std::string_view> names;
  for (const EngineProfile& profile : engine_profiles()) {
    EXPECT_TRUE(names.insert(profile.name).second) << profile.name;
    EXPECT_EQ(find_profile(profile.name), &profile);
    EXPECT_GT(profile.step.step_ms, 0) << profile.name;
    EXPECT_GT(profile.step.floor_ms, 0) << profile.name;
    EXPECT_GT(profile.step.tokens_per_second, 0) << profile.name;
    EXPECT_GT(profile.step.attention_ns, 0) << profile.name;
    EXPECT_GT(profile.step.context_ns, 0) << profile.name;
    EXPECT_LE(profile.max_seqs, profile.max_batched_tokens) << profile.name;
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"h200-8b", "h200-32b", "h200-70b-tp4", "l40s-8b", "cpu"}));
  EXPECT_EQ(find_profile("h200"), nullptr);
  EXPECT_EQ(find_profile(""), nullptr);
}

TEST(EngineProfiles, AreWhatTheOptionsSayOnceApplied) {
  for (const EngineProfile& profile : engine_profiles()) {
    Options options;
    profile.apply(options);
    const StepModel model = step_model(options);
    EXPECT_EQ(model.step_ms, profile.step.step_ms);
    EXPECT_EQ(model.sequence_ms, profile.step.sequence_ms);
    EXPECT_EQ(model.floor_ms, profile.step.floor_ms);
    EXPECT_EQ(model.tokens_per_second, profile.step.tokens_per_second);
    EXPECT_EQ(model.attention_ns, profile.step.attention_ns);
    EXPECT_EQ(model.context_ns, profile.step.context_ns);
    EXPECT_EQ(options.max_seqs, profile.max_seqs);
    EXPECT_EQ(options.max_batched_tokens, profile.max_batched_tokens);
  }
}

TEST(EngineProfiles, WithoutOneNothingIsAddedToTheSimpleFlags) {
  const StepModel model = step_model(Options{});
  EXPECT_EQ(model.step_ms, 2);
  EXPECT_EQ(model.tokens_per_second, 200000);
  EXPECT_EQ(model.sequence_ms + model.floor_ms + model.attention_ns + model.context_ns, 0);
}

// 4,096 tokens of an 8B model are 512 MiB, of a 32B one twice that.
TEST(EngineProfiles, AHandOffMovesTheKvAt50GigabytesASecond) {
  for (const auto& [name, expected] : {std::pair{"h200-8b", 10.7},
                                       {"h200-32b", 21.5},
                                       {"h200-70b-tp4", 6.7},
                                       {"l40s-8b", 10.7},
                                       {"cpu", 0.0}}) {
    for (const std::uint32_t block_size : {16U, 64U}) {
      Options options;
      options.block_size = block_size;
      find_profile(name)->apply(options);
      EXPECT_NEAR(options.block_transfer_ms() * 4096 / block_size, expected, 0.1) << name;
    }
  }
  EXPECT_EQ(Options{}.block_transfer_ms(), 0);
}

}  // namespace
}  // namespace baton::sim
