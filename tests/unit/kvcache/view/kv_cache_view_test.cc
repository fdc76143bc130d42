// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/kv_cache_view.h"

#include "unit/kvcache/view/counting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

using config::IndexSource;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr BlockShape kShape{.size = 4};

Holder holder(std::uint64_t worker, std::uint32_t rank = 0) { return {{worker}, rank}; }

class KvCacheViewTest : public testing::Test {
 protected:
  KvCacheView& make(IndexSource source = IndexSource::Auto) {
    settings.source = source;
    caches.emplace(settings, metrics, log);
    return *caches;
  }
  std::shared_ptr<Cache> join(Holder who, FeedHealth health, BlockShape shape = kShape) {
    const auto cache = caches->make({.holder = who,
                                     .worker = "worker-" + std::to_string(who.worker.value),
                                     .authority = "10.0.0.1:8000",
                                     .model = "m"},
                                    caches->index().join(who), shape);
    cache->set_health(health);
    table.caches[who] = cache;
    auto& shapes = table.plans["m"].shapes;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
    caches->publish(table);
    return cache;
  }
  // Its events say that it has the first blocks of the counting prompt.
  void store(const Cache& cache, std::size_t blocks, Tier tier = Tier::Device) {
    const auto tokens = counting(blocks * cache.shape().size);
    std::vector<NewBlock> stored;
    for (std::size_t i = 0; i < blocks; ++i) {
      stored.push_back({.engine = i + 1,
                        .block = hash_block(
                            std::span(tokens).subspan(i * cache.shape().size, cache.shape().size),
                            seed_of({}))});
    }
    caches->index().store(cache.slot(), std::nullopt, stored, tier);
  }
  PromptBlocks prompt(std::size_t tokens) const {
    return hash_prompt(caches->plan("m"), counting(tokens), "");
  }
  std::vector<Overlap> match(const PromptBlocks& blocks) const {
    auto overlaps = caches->match(blocks);
    std::ranges::sort(overlaps, {}, &Overlap::holder);
    expect_same(overlaps, caches->hits(blocks));
    return overlaps;
  }
  // The policies get the same: each tier's blocks beyond the nearer ones.
  static void expect_same(const std::vector<Overlap>& overlaps,
                          std::vector<scheduling::KnownPrompt::Hit> hits) {
    std::ranges::sort(hits, {}, &scheduling::KnownPrompt::Hit::key);
    ASSERT_EQ(hits.size(), overlaps.size());
    for (std::size_t i = 0; i < hits.size(); ++i) {
      const auto& [key, block_size, device, host, disk] = hits[i];
      const auto& blocks = overlaps[i].blocks;
      EXPECT_EQ(key, (scheduling::RankKey{overlaps[i].holder.worker, overlaps[i].holder.rank}));
      EXPECT_EQ(block_size, overlaps[i].block_size);
      EXPECT_EQ(device, blocks[static_cast<std::size_t>(Tier::Device)]);
      EXPECT_EQ(device + host, blocks[static_cast<std::size_t>(Tier::Host)]);
      EXPECT_EQ(device + host + disk, blocks[static_cast<std::size_t>(Tier::External)]);
    }
  }
  // The engine says it had nothing of what its events said.
  void report(Holder who, std::uint64_t told, std::uint64_t reported, int times) {
    for (int i = 0; i < times; ++i)
      caches->computed(who, {.told_before = told,
                             .told_after = told,
                             .reported = reported,
                             .fills_blocks = false,
                             .sent = {}});
  }

  config::KvIndex settings;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  KvCacheView::Table table;
  std::optional<KvCacheView> caches;
};

TEST_F(KvCacheViewTest, AnEmptyTableKnowsNothing) {
  make();
  EXPECT_TRUE(caches->plan("m").shapes.empty());
  EXPECT_THAT(caches->match(hash_prompt({.shapes = {kShape}, .lora = {}}, counting(40), "")),
              IsEmpty());
  EXPECT_THAT(caches->all(), IsEmpty());
  EXPECT_EQ(caches->find(holder(1)), nullptr);
}

TEST_F(KvCacheViewTest, WhereTheIndexIsOffNobodyHashes) {
  make(IndexSource::Off);
  join(holder(1), FeedHealth::None);
  EXPECT_TRUE(caches->plan("m").shapes.empty());
}

TEST_F(KvCacheViewTest, EventsCountByTierWhereTheFeedIsLive) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  store(*cache, 5, Tier::Host);
  store(*cache, 2, Tier::Device);
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_EQ(overlaps[0].holder, holder(1));
  EXPECT_EQ(overlaps[0].block_size, 4U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(2, 5, 5, 5));
  EXPECT_EQ(overlaps[0].told, 5U);
  EXPECT_EQ(overlaps[0].source, Trusted::Events);
}

TEST_F(KvCacheViewTest, PredictionsAddToEvents) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  store(*cache, 2);
  caches->sent(holder(1), prompt(16));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(overlaps[0].told, 2U);
  EXPECT_EQ(overlaps[0].source, Trusted::Events);
}

TEST_F(KvCacheViewTest, APredictionCountsBeforeTheFirstEvent) {
  make();
  join(holder(1), FeedHealth::Live);
  caches->sent(holder(1), prompt(16));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(overlaps[0].told, 0U);
}

TEST_F(KvCacheViewTest, NothingIsPredictedWhereThatIsSwitchedOff) {
  settings.prediction_ttl = std::chrono::milliseconds(0);
  make();
  join(holder(1), FeedHealth::Live);
  caches->sent(holder(1), prompt(16));
  EXPECT_THAT(match(prompt(40)), IsEmpty());
}

TEST_F(KvCacheViewTest, DecisionsCountWhereThereAreNoEvents) {
  make();
  join(holder(1), FeedHealth::None);
  join(holder(2), FeedHealth::Silent);
  join(holder(3), FeedHealth::None);
  caches->sent(holder(1), prompt(16));
  caches->sent(holder(2), prompt(8));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 2U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(overlaps[0].source, Trusted::Decisions);
  EXPECT_THAT(overlaps[1].blocks, ElementsAre(2, 2, 2, 2));
  caches->forget(holder(1));
  EXPECT_EQ(match(prompt(40)).size(), 1U);
}

TEST_F(KvCacheViewTest, LongPromptsAreRememberedWhole) {
  make();
  join(holder(1), FeedHealth::None);
  const PromptBlocks long_prompt = prompt(20'000);
  caches->sent(holder(1), long_prompt);
  const auto overlaps = match(long_prompt);
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_EQ(overlaps[0].blocks.back(), 5'000U);
}

TEST_F(KvCacheViewTest, OfAFeedThatWentSilentOnlyDecisionsCount) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  store(*cache, 5);
  cache->set_health(FeedHealth::Silent);
  caches->sent(holder(1), prompt(8));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(overlaps[0].told, 5U);
  EXPECT_EQ(overlaps[0].source, Trusted::Decisions);
}

TEST_F(KvCacheViewTest, WithEventsOnlyASilentCacheCountsAsEmpty) {
  make(IndexSource::Events);
  const auto cache = join(holder(1), FeedHealth::Silent);
  store(*cache, 5);
  caches->sent(holder(1), prompt(8));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(overlaps[0].source, Trusted::Nothing);
}

TEST_F(KvCacheViewTest, AWrongFeedCountsForNothingUntilItIsRight) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  store(*cache, 5);
  report(holder(1), 20, 0, 20);
  EXPECT_THAT(match(prompt(40))[0].blocks, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(match(prompt(40))[0].told, 5U);
  EXPECT_THAT(lines, AllOf(HasSubstr("kv_feed_wrong"), HasSubstr("worker-1"),
                           Not(HasSubstr("kv_feed_right_again"))));
  report(holder(1), 20, 20, 100);
  EXPECT_THAT(match(prompt(40))[0].blocks, ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(lines, HasSubstr("kv_feed_right_again"));
}

TEST_F(KvCacheViewTest, EventsOnTheirWayDoNotMakeAFeedWrong) {
  make();
  const auto late = join(holder(1), FeedHealth::Live);
  const auto never = join(holder(2), FeedHealth::Live);
  const auto blocks = std::make_shared<const PromptBlocks>(prompt(13));
  for (int i = 0; i < 20; ++i) {
    for (const std::uint64_t worker : {1U, 2U})
      caches->computed(holder(worker), {.reported = 8, .blocks = blocks, .sent = {}});
  }
  const auto now = Clock::now();
  caches->settle(now);
  EXPECT_EQ(never->truth().samples, 0U) << "they may come yet";
  store(*late, 3);
  caches->settle(now + std::chrono::seconds(1));
  EXPECT_EQ(late->truth().samples, 20U);
  EXPECT_EQ(late->truth().error, 0);
  EXPECT_TRUE(late->believed());
  EXPECT_FALSE(never->believed());
}

TEST_F(KvCacheViewTest, AFeedThatSaysNothingIsNotCalledWrong) {
  make();
  for (const FeedHealth health : {FeedHealth::None, FeedHealth::Waiting, FeedHealth::Silent}) {
    const auto cache = join(holder(static_cast<std::uint64_t>(health)), health);
    report(cache->identity().holder, 0, 20, 50);
    EXPECT_TRUE(cache->believed()) << to_string(health);
  }
  EXPECT_EQ(lines, "");
}

// Its events will tell the prompt's blocks as if they were anybody's.
TEST_F(KvCacheViewTest, APromptThatIsHiddenInEventsEndsTheirUse) {
  const Hidden all{.salts = true, .adapters = true, .keys = true};
  const auto hidden_prompt = [this](bool keyed) {
    return hash_prompt(
        caches->plan("m"), counting(8),
        keyed ? PromptScope{.salt = {}, .key = "k"} : PromptScope{.salt = "s", .key = {}});
  };
  for (const bool keyed : {false, true}) {
    table = {};
    KvCacheView& all_caches = make();
    const auto cache = join(holder(1), FeedHealth::Live);
    store(*cache, 3);
    const PromptBlocks hidden = hidden_prompt(keyed);
    cache->set_hidden(keyed ? Hidden{.salts = true} : Hidden{.keys = true});
    all_caches.sent(holder(1), hidden);
    EXPECT_EQ(match(prompt(12))[0].source, Trusted::Events) << "this one tells it";
    EXPECT_THAT(all_caches.take_expecting(), testing::IsEmpty());
  }
  for (const bool keyed : {false, true}) {
    table = {};
    KvCacheView& all_caches = make();
    const auto cache = join(holder(1), FeedHealth::Live);
    store(*cache, 3);
    const PromptBlocks hidden = hidden_prompt(keyed);
    cache->set_hidden(all);
    all_caches.sent(holder(1), prompt(12));
    EXPECT_EQ(match(prompt(12))[0].source, Trusted::Events) << "nothing is hidden in this one";
    all_caches.sent(holder(1), hidden);
    all_caches.sent(holder(1), hidden);
    EXPECT_THAT(all_caches.take_expecting(), testing::ElementsAre(holder(1))) << "to be said once";
    const auto plain = match(prompt(12));
    ASSERT_EQ(plain.size(), 1U);
    EXPECT_EQ(plain[0].source, Trusted::Decisions);
    EXPECT_EQ(plain[0].blocks.back(), 0U);
    EXPECT_EQ(plain[0].told, 3U);
    const auto again = match(hidden);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].blocks.back(), 2U) << "it was sent there";
    report(holder(1), 12, 0, 20);
    EXPECT_TRUE(cache->believed()) << "nobody goes by it, so nobody judges it";
  }
}

// Old SGLang's tell of no adapter; vLLM's do.
TEST_F(KvCacheViewTest, APromptOfAnAdapterIsNotJudgedByEventsThatDoNotTellIt) {
  for (const bool told : {false, true}) {
    table = {};
    KvCacheView& all_caches = make();
    const auto cache = join(holder(1), FeedHealth::Live);
    cache->set_hidden({.adapters = !told, .keys = true});
    HashPlan plan = caches->plan("m");
    plan.lora = "sql";
    all_caches.sent(holder(1), hash_prompt(plan, counting(8), ""));
    EXPECT_EQ(cache->mixed(), !told);
    // The engine had all of it, for its adapter; its events know of none.
    const auto blocks = std::make_shared<PromptBlocks>(hash_prompt(plan, counting(8), ""));
    for (int i = 0; i < 50; ++i) {
      all_caches.computed(holder(1), {.told_before = 0,
                                      .told_after = 0,
                                      .reported = 4,
                                      .blocks = blocks,
                                      .fills_blocks = false,
                                      .sent = {}});
    }
    all_caches.settle(Clock::now() + std::chrono::minutes(1));
    EXPECT_EQ(cache->believed(), !told);
  }
}

// What was in doubt before counts no more once other blocks may be taken for it.
TEST_F(KvCacheViewTest, ADoubtOfBeforeACacheWasMixedIsNotJudged) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  const auto blocks = std::make_shared<PromptBlocks>(prompt(8));
  for (int i = 0; i < 50; ++i) {
    caches->computed(holder(1), {.told_before = 0,
                                 .told_after = 0,
                                 .reported = 4,
                                 .blocks = blocks,
                                 .fills_blocks = false,
                                 .sent = {}});
  }
  cache->mix();
  caches->settle(Clock::now() + std::chrono::minutes(1));
  EXPECT_EQ(cache->truth().samples, 0U);
}

TEST_F(KvCacheViewTest, APromptThatMustLeaveBlocksMakesEventsDue) {
  make();
  const auto cache = join(holder(1), FeedHealth::Waiting);
  const auto sent = Clock::now();
  KvCacheView::Computed what{.sent = sent};
  caches->computed(holder(1), what);
  EXPECT_EQ(cache->overdue_since(std::nullopt), std::nullopt);
  what.fills_blocks = true;
  caches->computed(holder(1), what);
  EXPECT_NE(cache->overdue_since(std::nullopt), std::nullopt);
  EXPECT_EQ(cache->overdue_since(sent), std::nullopt);
}

TEST_F(KvCacheViewTest, EachCacheIsAskedInItsOwnShape) {
  make();
  const auto four = join(holder(1), FeedHealth::Live);
  const auto eight = join(holder(2), FeedHealth::Live, {.size = 8});
  store(*four, 3);
  store(*eight, 2);
  join(holder(3), FeedHealth::None, {.size = 8});
  caches->sent(holder(3), prompt(8));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 3U);
  EXPECT_EQ(overlaps[0].block_size, 4U);
  EXPECT_EQ(overlaps[0].told, 3U);
  EXPECT_EQ(overlaps[1].block_size, 8U);
  EXPECT_EQ(overlaps[1].told, 2U);
  EXPECT_EQ(overlaps[2].block_size, 8U);
  EXPECT_THAT(overlaps[2].blocks, ElementsAre(1, 1, 1, 1));
}

TEST_F(KvCacheViewTest, WhatWasSentInAnotherShapeThanTheCacheHasDoesNotCount) {
  make();
  const auto cache = join(holder(1), FeedHealth::None);
  join(holder(2), FeedHealth::None, {.size = 8});
  caches->sent(holder(1), prompt(16));
  cache->set_shape({.size = 8});
  EXPECT_THAT(match(prompt(40)), IsEmpty());
  caches->sent(holder(1), prompt(16));
  const auto overlaps = match(prompt(40));
  ASSERT_EQ(overlaps.size(), 1U) << "a holder is told of once";
  EXPECT_EQ(overlaps[0].block_size, 8U);
  EXPECT_THAT(overlaps[0].blocks, ElementsAre(2, 2, 2, 2));
}

TEST_F(KvCacheViewTest, TellsWhatTheEventsOfOneHolderSay) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  join(holder(2), FeedHealth::None);
  store(*cache, 5);
  const KvCacheView::Told all = caches->told(prompt(20), holder(1));
  EXPECT_EQ(all.blocks, 5U);
  EXPECT_EQ(all.of, 5U);
  EXPECT_EQ(all.tokens, 16U) << "the last token is computed, and so its block";
  EXPECT_EQ(all.most, 16U);
  EXPECT_EQ(all.source, Trusted::Events);
  const KvCacheView::Told part = caches->told(prompt(40), holder(1));
  EXPECT_EQ(part.of, 10U);
  EXPECT_EQ(part.tokens, 20U);
  EXPECT_EQ(part.most, 36U);
  const KvCacheView::Told none = caches->told(prompt(40), holder(2));
  EXPECT_EQ(none.blocks, 0U);
  EXPECT_EQ(none.of, 10U);
  EXPECT_EQ(none.source, Trusted::Decisions);
}

TEST_F(KvCacheViewTest, OfUnknownHoldersNothingIsTold) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  store(*cache, 5);
  caches->sent(holder(7), prompt(16));
  caches->computed(holder(7), {.reported = 5, .fills_blocks = true, .sent = {}});
  EXPECT_EQ(caches->told(prompt(20), holder(7)).of, 0U);
  // In the index still, but of nobody who is there.
  table.caches.clear();
  caches->publish(table);
  EXPECT_THAT(match(prompt(40)), IsEmpty());
  EXPECT_EQ(caches->told(prompt(40), holder(1)).of, 0U);
}

TEST_F(KvCacheViewTest, APromptHashedForOtherShapesIsOfNoUse) {
  make();
  join(holder(1), FeedHealth::None);
  const auto other = hash_prompt({.shapes = {{.size = 3}}, .lora = {}}, counting(40), "");
  caches->sent(holder(1), other);
  EXPECT_THAT(match(other), IsEmpty());
  EXPECT_EQ(caches->told(other, holder(1)).of, 0U);
}

TEST_F(KvCacheViewTest, MetricsShowCachesAndTruth) {
  make();
  const auto cache = join(holder(1), FeedHealth::Live);
  join(holder(2), FeedHealth::None);
  store(*cache, 5);
  report(holder(1), 20, 10, 3);
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("baton_kv_index_blocks 5\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_index_memberships 5\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_index_limit 16000000\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_index_membership_limit 128000000\n"));
  EXPECT_THAT(text, HasSubstr("source=\"events\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("source=\"decisions\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tier=\"device\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_worker_bytes{model=\"m\",worker=\"10.0.0.1:8000\"} " +
                              std::to_string(caches->index().holding(cache->slot()).bytes) + "\n"));
  EXPECT_THAT(text,
              HasSubstr("baton_kv_predicted_tokens{model=\"m\",worker=\"10.0.0.1:8000\"} 60\n"));
  EXPECT_THAT(text,
              HasSubstr("baton_kv_reported_tokens{model=\"m\",worker=\"10.0.0.1:8000\"} 30\n"));
  EXPECT_THAT(text,
              HasSubstr("baton_kv_feed_wrong_percent{model=\"m\",worker=\"10.0.0.1:8000\"} 50\n"));
}

// Readers see a whole table and what was stored before, while others come, go and are sent prompts.
TEST_F(KvCacheViewTest, ManyMayAskWhileTheTableChanges) {
  make();
  const auto steady = join(holder(1), FeedHealth::Live);
  store(*steady, 5);
  const PromptBlocks asked = prompt(40);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto overlaps = caches->match(asked);
        const auto found = std::ranges::find(overlaps, holder(1), &Overlap::holder);
        if (found == overlaps.end() || found->told != 5) ++wrong;
        for (const Overlap& overlap : overlaps)
          if (std::ranges::count(overlaps, overlap.holder, &Overlap::holder) != 1) ++wrong;
        caches->sent(holder(2), asked);
        caches->computed(holder(2), {.reported = 0, .fills_blocks = true, .sent = Clock::now()});
      }
    });
  }
  for (int round = 0; round < 300; ++round) {
    const auto cache = join(holder(2), round % 2 == 0 ? FeedHealth::Live : FeedHealth::None);
    store(*cache, 3);
    cache->set_health(FeedHealth::Silent);
    table.caches.erase(holder(2));
    caches->publish(table);
    caches->index().leave(cache->slot());
    caches->forget(holder(2));
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace baton::kvcache
