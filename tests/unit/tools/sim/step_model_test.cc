// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/step_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <utility>

namespace baton::sim {
namespace {

constexpr StepModel kModel{.step_ms = 3,
                           .sequence_ms = 0.25,
                           .floor_ms = 10,
                           .tokens_per_second = 1000,
                           .attention_ns = 2000,
                           .context_ns = 5000};

StepLoad pieces(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> list) {
  StepLoad load;
  for (const auto& [tokens, before] : list) load.add_piece(tokens, before);
  return load;
}

StepLoad decodes(std::initializer_list<std::uint64_t> contexts) {
  StepLoad load;
  for (const std::uint64_t context : contexts) load.add_decode(context);
  return load;
}

TEST(StepModel, AddsItsParts) {
  StepLoad load = pieces({{40, 100}});
  load.add_decode(1000);
  load.add_decode(200);
  load.sequences = 3;
  // 3, 3 sequences, 42 tokens at one a millisecond, 40 * (100 + 20) pairs, 1200 tokens of context.
  EXPECT_DOUBLE_EQ(kModel.ms(load), 3 + 0.75 + 42 + 4800 * 0.002 + 1200 * 0.005);
}

TEST(StepModel, ComputesAtLeastAsLongAsTheFloor) {
  constexpr StepModel model{.floor_ms = 10, .tokens_per_second = 1000};
  EXPECT_DOUBLE_EQ(model.ms(pieces({{1, 0}})), 10);
  EXPECT_DOUBLE_EQ(model.ms(pieces({{5, 0}, {5, 0}})), 10);
  EXPECT_DOUBLE_EQ(model.ms(pieces({{5, 0}, {6, 0}})), 11);
  EXPECT_DOUBLE_EQ(model.ms(decodes({900})), 10);
}

TEST(StepModel, CountsTheFloorOnceForPromptsAndDecodesTogether) {
  constexpr StepModel model{.floor_ms = 10, .tokens_per_second = 1000};
  StepLoad load = pieces({{8, 0}});
  load.add_decode(50);
  load.add_decode(50);
  EXPECT_DOUBLE_EQ(model.ms(load), 10);
  load.add_decode(50);
  EXPECT_DOUBLE_EQ(model.ms(load), 11);
}

TEST(StepModel, WithoutAFloorOnlyPromptsAreComputed) {
  constexpr StepModel model{.step_ms = 2, .sequence_ms = 0.5, .tokens_per_second = 1000};
  StepLoad load = pieces({{30, 0}});
  load.add_decode(1000);
  load.sequences = 2;
  EXPECT_DOUBLE_EQ(model.ms(load), 33);
  load = decodes({1000, 1000});
  load.sequences = 2;
  EXPECT_DOUBLE_EQ(model.ms(load), 3);
}

TEST(StepModel, ASpeedOfZeroIsNoTime) {
  constexpr StepModel instant{};
  EXPECT_EQ(instant.ms(pieces({{100000, 0}})), 0);
  constexpr StepModel floor_alone{.floor_ms = 4};
  EXPECT_EQ(floor_alone.ms(pieces({{100000, 0}})), 4);
  EXPECT_EQ(floor_alone.ms({}), 0);  // nothing is computed
}

TEST(StepModel, APromptAttendsToAsMuchInPiecesAsAtOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t length = 1 + random() % 20000;
    double pairs = 0;
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t piece = std::min(length - done, 1 + random() % 5000);
      pairs += pieces({{piece, done}}).attended_pairs;
      done += piece;
    }
    const auto n = static_cast<double>(length);
    EXPECT_DOUBLE_EQ(pairs, n * n / 2);
  }
}

TEST(StepModel, CachedTokensAreAttendedToButNotComputed) {
  const StepLoad after_hit = pieces({{100, 900}});
  EXPECT_EQ(after_hit.prompt_tokens, 100U);
  EXPECT_DOUBLE_EQ(after_hit.attended_pairs,
                   pieces({{1000, 0}}).attended_pairs - pieces({{900, 0}}).attended_pairs);
}

TEST(StepModel, MoreToDoIsNeverFaster) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    StepLoad load;
    double before = kModel.ms(load);
    for (int i = 0; i < 20; ++i) {
      if (random() % 2 == 0) {
        load.add_piece(random() % 50, random() % 1000);
      } else {
        load.add_decode(random() % 1000);
      }
      ++load.sequences;
      const double now = kModel.ms(load);
      EXPECT_GE(now, before);
      before = now;
    }
  }
}

}  // namespace
}  // namespace baton::sim
