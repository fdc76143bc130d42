// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What is told of a pool's changes, and what faults make of it, seen through TensorRT-LLM's events.
#include "tools/sim/kv_reporter.h"

#include <gtest/gtest.h>

#include <numeric>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

class KvReporterTest : public testing::Test {
 protected:
  KvReporterTest() {
    options_.engine = model::Engine::Trtllm;
    options_.block_size = 4;
    options_.kv.buffer = 100;
    reporter_.emplace(options_, 0, pool_, faults_, std::nullopt);
    told();
  }

  void use(TokenId first) {
    std::vector<TokenId> prompt(5);
    std::iota(prompt.begin(), prompt.end(), first);
    pool_.release(pool_.allocate(prompt, 0)->blocks);
    reporter_->report();
  }
  void on(FaultKind kind, std::uint64_t count = 1) {
    faults_.add({.kind = kind, .count = count}, std::chrono::steady_clock::now());
  }
  // The types of the events since the last call, and their ids.
  std::vector<std::pair<std::string, int>> told() {
    ordered_json events = ordered_json::array();
    reporter_->drain(events);
    std::vector<std::pair<std::string, int>> out;
    for (const auto& event : events) out.emplace_back(event["data"]["type"], event["event_id"]);
    return out;
  }

  using Told = std::vector<std::pair<std::string, int>>;
  Options options_;
  BlockPool pool_{10, 4, {.recording = true}};
  FaultTable faults_;
  std::optional<KvReporter> reporter_;
};

TEST_F(KvReporterTest, TellsOncePerChange) {
  use(10);
  EXPECT_EQ(told(), (Told{{"stored", 1}}));
  use(10);
  EXPECT_EQ(told(), Told{});
  EXPECT_EQ(reporter_->counters().batches, 1U);
  EXPECT_EQ(reporter_->counters().events, 1U);
}

TEST_F(KvReporterTest, SilenceLeavesNoTrace) {
  on(FaultKind::KvSilence);
  use(10);
  use(20);
  EXPECT_EQ(told(), (Told{{"stored", 1}}));
  EXPECT_EQ(pool_.cached(), 2U);
}

TEST_F(KvReporterTest, ADroppedBatchIsCounted) {
  on(FaultKind::KvDrop, 2);
  use(10);
  use(20);
  use(30);
  EXPECT_EQ(told(), (Told{{"stored", 3}}));
}

TEST_F(KvReporterTest, StoresComeTwiceUnderNumbersOfTheirOwnAndBatchesUnderTheSame) {
  on(FaultKind::KvDuplicateStores);
  use(10);
  EXPECT_EQ(told(), (Told{{"stored", 1}, {"stored", 2}}));
  on(FaultKind::KvDuplicate);
  use(20);
  EXPECT_EQ(told(), (Told{{"stored", 3}, {"stored", 3}}));
}

TEST_F(KvReporterTest, ALieTellsOfWhatIsNotThere) {
  on(FaultKind::KvLie);
  use(10);
  EXPECT_EQ(told(), (Told{{"stored", 1}}));
  EXPECT_EQ(pool_.cached(), 0U);
}

TEST_F(KvReporterTest, ScrambledTokensAreOthersAndTheBlocksAreThere) {
  on(FaultKind::KvScramble);
  use(10);
  ordered_json events = ordered_json::array();
  reporter_->drain(events);
  EXPECT_EQ(events[0]["data"]["blocks"][0]["tokens"][0]["token_id"], 11);
  EXPECT_EQ(pool_.table().at(0).tokens.front(), 10U);
}

TEST_F(KvReporterTest, ARestartForgetsAndBeginsAnew) {
  use(10);
  reporter_->restart();
  EXPECT_EQ(pool_.cached(), 0U);
  use(20);
  EXPECT_EQ(told(), (Told{{"created", 0}, {"stored", 1}}));
}

TEST_F(KvReporterTest, FaultsOfRequestsDoNotStrike) {
  on(FaultKind::Status);
  use(10);
  EXPECT_EQ(told().size(), 1U);
  EXPECT_TRUE(faults_.strike(Phase::Aggregated, std::chrono::steady_clock::now()));
}

TEST(KvReporter, SglangBeginsByClearing) {
  Options options;
  options.engine = model::Engine::Sglang;
  options.kv.events = "tcp://127.0.0.1:0";
  BlockPool pool(10, 4, {.recording = true});
  FaultTable faults;
  KvReporter reporter(options, 0, pool, faults, std::nullopt);
  reporter.report();
  EXPECT_EQ(reporter.counters().events, 1U);
  reporter.restart();
  reporter.report();
  EXPECT_EQ(reporter.counters().events, 2U);
}

}  // namespace
}  // namespace baton::sim
