// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/cache_hit_tracker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace baton::pipeline {
namespace {

using kvcache::Cache;
using kvcache::FeedHealth;
using kvcache::Holder;

constexpr kvcache::BlockShape kShape{.size = 4};
constexpr std::size_t kPromptTokens = 22;  // five blocks, all of which can be used again

std::vector<kvcache::TokenId> counting(std::size_t tokens) {
  std::vector<kvcache::TokenId> made(tokens);
  std::iota(made.begin(), made.end(), 1U);
  return made;
}

engine::Usage usage(std::optional<std::int64_t> cached) {
  return {.prompt_tokens = kPromptTokens, .completion_tokens = 3, .cached_tokens = cached};
}

class CacheHitTrackerTest : public testing::Test {
 protected:
  CacheHitTrackerTest() {
    for (const std::uint64_t id : {1UZ, 2UZ}) {
      model::WorkerSpec spec;
      spec.endpoint = {"10.0.0.1", static_cast<std::uint16_t>(8000 + id)};
      spec.data_parallel_size = id == 2 ? 2 : 1;
      workers[id] = std::make_shared<fleet::Worker>(model::WorkerId{id}, spec, config::Health{});
      for (std::uint32_t rank = 0; rank < spec.data_parallel_size; ++rank) join({{id}, rank});
    }
    table.plans["m"].shapes = {kShape};
    caches.publish(table);
  }
  void join(Holder holder) {
    const auto cache = std::make_shared<Cache>(
        Cache::Identity{.holder = holder, .worker = "w", .authority = "a", .model = "m"},
        caches.index().join(holder), kShape);
    cache->set_health(FeedHealth::Live);
    table.caches[holder] = cache;
  }
  // Its events say that it has the prompt's first blocks.
  void store(std::uint64_t worker, std::size_t blocks, std::uint32_t rank = 0) {
    const auto tokens = counting(blocks * kShape.size);
    std::vector<kvcache::NewBlock> stored;
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto block = std::span(tokens).subspan(i * kShape.size, kShape.size);
      stored.push_back(
          {.engine = i + 1, .block = kvcache::hash_block(block, kvcache::seed_of({}))});
    }
    caches.index().store(cache(worker, rank).slot(), std::nullopt, stored, kvcache::Tier::Device);
  }
  CacheHitTracker watch() {
    return {caches, std::make_shared<const kvcache::PromptBlocks>(
                        kvcache::hash_prompt(caches.plan("m"), counting(kPromptTokens), ""))};
  }
  void computing(CacheHitTracker& watch, std::uint64_t worker, std::uint32_t rank = 0) {
    watch.computing(fleet::Booking(workers.at(worker), rank));
  }
  Cache& cache(std::uint64_t worker, std::uint32_t rank = 0) {
    return *table.caches.at({{worker}, rank});
  }
  Cache::Truth truth(std::uint64_t worker, std::uint32_t rank = 0) {
    return cache(worker, rank).truth();
  }
  bool events_due(std::uint64_t worker) {
    return cache(worker).overdue_since(std::nullopt).has_value();
  }

  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  kvcache::KvCacheView caches{config::KvIndex{}, metrics, log};
  kvcache::KvCacheView::Table table;
  std::map<std::uint64_t, std::shared_ptr<fleet::Worker>> workers;
};

TEST_F(CacheHitTrackerTest, TellsWhoHasTheBeginning) {
  store(1, 3);
  store(2, 5, 1);
  const auto known = watch().known();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->tokens, kPromptTokens);
  ASSERT_EQ(known->shapes.size(), 1U);
  EXPECT_EQ(known->shapes[0].block_size, kShape.size);
  EXPECT_EQ(known->shapes[0].chain->size(), 5U);
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> blocks;
  for (const auto& hit : known->hits) {
    blocks[{hit.key.worker.value, hit.key.rank}] = hit.device;
    EXPECT_EQ(hit.host + hit.disk, 0U);
  }
  EXPECT_EQ(blocks, (decltype(blocks){{{1, 0}, 3}, {{2, 1}, 5}}));
}

TEST_F(CacheHitTrackerTest, ComparesWhatWasToldWithTheAnswersUsage) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  EXPECT_EQ(followed.predicted(), 12);
  followed.answered();
  followed.finish(usage(8));
  EXPECT_EQ(truth(1).samples, 1U);
  EXPECT_EQ(truth(1).predicted_tokens, 12U);
  EXPECT_EQ(truth(1).reported_tokens, 8U);
  EXPECT_EQ(followed.predicted(), 12);
}

TEST_F(CacheHitTrackerTest, AWholeAnswerNeedsNoFirstToken) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.finish(usage(12));
  EXPECT_EQ(truth(1).samples, 1U);
  EXPECT_EQ(truth(1).error, 0);
}

TEST_F(CacheHitTrackerTest, KnowsTheRank) {
  store(2, 2, 1);
  CacheHitTracker followed = watch();
  computing(followed, 2, 1);
  followed.finish(usage(8));
  EXPECT_EQ(truth(2, 0).samples, 0U);
  EXPECT_EQ(truth(2, 1).samples, 1U);
  EXPECT_EQ(truth(2, 1).error, 0);
}

TEST_F(CacheHitTrackerTest, WhereTheEngineChoosesTheRankNobodyIsJudged) {
  model::WorkerSpec spec = workers.at(2)->spec();
  spec.engine = model::Engine::Trtllm;
  workers[2] = std::make_shared<fleet::Worker>(model::WorkerId{2}, spec, config::Health{});
  store(2, 2, 1);
  CacheHitTracker followed = watch();
  computing(followed, 2, 1);
  EXPECT_EQ(followed.predicted(), std::nullopt);
  followed.finish(usage(0));
  EXPECT_EQ(truth(2, 1).samples, 0U);
}

TEST_F(CacheHitTrackerTest, AfterARetryTheLastWorkerCounts) {
  store(1, 5);
  store(2, 2);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  computing(followed, 2);
  EXPECT_EQ(followed.predicted(), 8);
  followed.answered();
  followed.finish(usage(8));
  EXPECT_EQ(truth(1).samples, 0U);
  EXPECT_FALSE(events_due(1));
  EXPECT_EQ(truth(2).samples, 1U);
  EXPECT_EQ(truth(2).error, 0);
}

TEST_F(CacheHitTrackerTest, AfterARetryThePrefillWorkersReportIsForgotten) {
  store(1, 5);
  store(2, 2);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.computed(usage(20));
  computing(followed, 2);  // decode could not have it, and computes it itself
  followed.finish(usage(8));
  EXPECT_EQ(truth(1).samples, 0U);
  EXPECT_EQ(truth(2).reported_tokens, 8U);
}

TEST_F(CacheHitTrackerTest, APrefillWorkersReportCountsAndNotThatOfDecode) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.computed(usage(12));
  followed.answered();
  followed.finish(usage(20));
  EXPECT_EQ(truth(1).reported_tokens, 12U);
  EXPECT_EQ(truth(1).error, 0);
}

TEST_F(CacheHitTrackerTest, APrefillWorkerThatDoesNotReportIsNotJudgedByDecode) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.computed(std::nullopt);
  followed.finish(usage(20));
  EXPECT_EQ(truth(1).samples, 0U);
}

TEST_F(CacheHitTrackerTest, WhatIsContinuedElsewhereAfterTheFirstTokenIsNotCompared) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.answered();
  computing(followed, 2);
  EXPECT_EQ(followed.predicted(), std::nullopt);
  followed.finish(usage(12));
  EXPECT_EQ(truth(1).samples, 0U);
  EXPECT_EQ(truth(2).samples, 0U);
}

TEST_F(CacheHitTrackerTest, BlocksThatCameMeanwhileMayBeInTheReport) {
  store(1, 1);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  store(1, 4);
  followed.answered();
  store(1, 5);
  followed.finish(usage(16));
  EXPECT_EQ(truth(1).samples, 1U);
  EXPECT_EQ(truth(1).error, 0);
}

TEST_F(CacheHitTrackerTest, BlocksThatComeAfterTheAnswerMayBeInTheReport) {
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.answered();
  followed.finish(usage(16));
  EXPECT_EQ(truth(1).samples, 0U);
  store(1, 5);
  caches.settle(kvcache::Clock::now() + std::chrono::seconds(1));
  EXPECT_EQ(truth(1).samples, 1U);
  EXPECT_EQ(truth(1).error, 0);
}

TEST_F(CacheHitTrackerTest, OfAReportOfNothingNothingIsLearned) {
  store(1, 3);
  CacheHitTracker nobody = watch();
  nobody.finish(usage(12));  // never sent
  EXPECT_EQ(nobody.predicted(), std::nullopt);
  for (const auto& report : {std::optional<engine::Usage>(), std::optional(usage(std::nullopt)),
                             std::optional(usage(-4))}) {
    CacheHitTracker followed = watch();
    computing(followed, 1);
    followed.finish(report);
  }
  EXPECT_EQ(truth(1).samples, 0U);
}

TEST_F(CacheHitTrackerTest, WithoutEventsNothingIsPredictedButWhatWasSentIsRemembered) {
  cache(1).set_health(FeedHealth::None);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  EXPECT_EQ(followed.predicted(), std::nullopt);
  const auto overlaps =
      caches.match(kvcache::hash_prompt(caches.plan("m"), counting(kPromptTokens), ""));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_EQ(overlaps[0].blocks.front(), 5U);
  EXPECT_EQ(overlaps[0].source, kvcache::Trusted::Decisions);
}

TEST_F(CacheHitTrackerTest, NewBlocksMakeEventsDue) {
  store(1, 3);
  CacheHitTracker followed = watch();
  computing(followed, 1);
  followed.answered();
  EXPECT_FALSE(events_due(1));
  followed.finish(usage(12));
  EXPECT_TRUE(events_due(1));
}

TEST_F(CacheHitTrackerTest, NothingIsDueWhereAllBlocksWereThere) {
  store(1, 5);
  CacheHitTracker told = watch();
  computing(told, 1);
  told.finish(std::nullopt);
  EXPECT_FALSE(events_due(1));
  // The engine has all of them from a time of which no event tells.
  CacheHitTracker reported = watch();
  computing(reported, 2);
  reported.finish(usage(20));
  EXPECT_FALSE(events_due(2));
}

}  // namespace
}  // namespace baton::pipeline
