// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "sim/scheduler.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using namespace std::chrono_literals;

class SchedulerTest : public testing::Test {
 protected:
  Scheduler& make(std::uint32_t blocks = 100) {
    options_.block_size = 4;
    pool_.emplace(blocks, options_.block_size);
    return scheduler_.emplace(options_, *pool_);
  }
  SequenceId submit(std::size_t prompt, std::uint32_t output, bool keep = false) {
    return scheduler_->submit({.prompt = std::vector<TokenId>(prompt, next_token_++),
                               .output_tokens = output,
                               .keep_blocks = keep});
  }
  std::vector<TokenProduced> step() {
    if (!scheduler_->begin_step()) return {};
    return scheduler_->finish_step();
  }

  Options options_;
  std::optional<BlockPool> pool_;
  std::optional<Scheduler> scheduler_;
  TokenId next_token_ = 1;  // so that no two prompts share a prefix
};

TEST_F(SchedulerTest, ProducesOneTokenPerSequenceAndStep) {
  make();
  const SequenceId a = submit(3, 2);
  const SequenceId b = submit(3, 1);
  const auto first = step();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].sequence, a);
  EXPECT_TRUE(first[0].first);
  EXPECT_FALSE(first[0].last);
  EXPECT_EQ(first[1].sequence, b);
  EXPECT_TRUE(first[1].last);
  const auto second = step();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_FALSE(second[0].first);
  EXPECT_TRUE(second[0].last);
  EXPECT_FALSE(scheduler_->begin_step());
  EXPECT_EQ(pool_->available(), 100U);
}

TEST_F(SchedulerTest, StepTimeIsBasePlusBatchPlusPrefill) {
  options_.decode_ms = 2;
  options_.decode_ms_per_seq = 0.5;
  options_.prefill_tokens_per_second = 1000;
  make();
  submit(10, 2);
  submit(20, 2);
  EXPECT_EQ(scheduler_->begin_step(), 33ms);  // 2 + 2 * 0.5 + 30
  scheduler_->finish_step();
  EXPECT_EQ(scheduler_->begin_step(), 3ms);
}

TEST_F(SchedulerTest, CachedAndFetchedTokensCostNoPrefillTime) {
  options_.decode_ms = 0;
  options_.prefill_tokens_per_second = 1000;
  make();
  scheduler_->submit({.prompt = std::vector<TokenId>(9, 5), .output_tokens = 1});
  EXPECT_EQ(scheduler_->begin_step(), 9ms);
  scheduler_->finish_step();
  scheduler_->submit({.prompt = std::vector<TokenId>(9, 5), .output_tokens = 1});
  EXPECT_EQ(scheduler_->begin_step(), 1ms);  // two full blocks of four are reused
  EXPECT_EQ(scheduler_->finish_step().front().cached_tokens, 8U);
  scheduler_->submit(
      {.prompt = std::vector<TokenId>(9, 6), .output_tokens = 1, .fetched_tokens = 9});
  EXPECT_EQ(scheduler_->begin_step(), 0ms);
  EXPECT_EQ(scheduler_->finish_step().front().cached_tokens, 9U);
}

TEST_F(SchedulerTest, WaitsForASeat) {
  options_.max_seqs = 1;
  make();
  submit(3, 1);
  submit(3, 1);
  EXPECT_EQ(step().size(), 1U);
  EXPECT_EQ(scheduler_->waiting(), 1U);
  EXPECT_EQ(step().size(), 1U);
}

TEST_F(SchedulerTest, WaitsForBlocksInArrivalOrder) {
  make(4);
  submit(8, 4);
  submit(8, 4);
  submit(1, 1);  // would fit, but does not overtake
  EXPECT_EQ(step().size(), 1U);
  EXPECT_EQ(scheduler_->waiting(), 2U);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(step().size(), 2U);
}

TEST_F(SchedulerTest, AbortFreesBlocksOfRunningAndForgetsWaiting) {
  options_.max_seqs = 1;
  make();
  const SequenceId running = submit(8, 100);
  const SequenceId waiting = submit(8, 100);
  ASSERT_TRUE(scheduler_->begin_step());
  scheduler_->abort(waiting);
  scheduler_->abort(running);
  EXPECT_TRUE(scheduler_->finish_step().empty());
  EXPECT_EQ(pool_->available(), 100U);
  EXPECT_EQ(scheduler_->running() + scheduler_->waiting(), 0U);
}

TEST_F(SchedulerTest, HandsTheBlocksOfAPrefillToTheCaller) {
  make();
  submit(8, 1, true);
  const auto produced = step();
  ASSERT_EQ(produced.size(), 1U);
  EXPECT_EQ(produced[0].kept_blocks.size(), 3U);
  EXPECT_EQ(pool_->available(), 97U);
  pool_->release(produced[0].kept_blocks);
  EXPECT_EQ(pool_->available(), 100U);
}

// Blocks of four: three prompt tokens, then one for each step but the last.
TEST_F(SchedulerTest, OutputIsCachedAsItGoesOrAtTheEndByEngine) {
  for (const auto engine : {model::Engine::Vllm, model::Engine::Sglang}) {
    options_.engine = engine;
    make();
    scheduler_->submit({.prompt = {1, 2, 3},
                        .output_tokens = 6,
                        .answer = {.hash = 7, .begun = 0},
                        .answer_tokens = 6});
    step();
    EXPECT_EQ(pool_->cached(), 0U);
    step();
    EXPECT_EQ(pool_->cached(), engine == model::Engine::Vllm ? 1U : 0U);
    for (int i = 0; i < 4; ++i) step();
    EXPECT_EQ(pool_->cached(), 2U);
    const std::vector<TokenId> prompt{1, 2, 3, output_token(7, 0), 5};
    EXPECT_EQ(pool_->allocate(prompt, 0)->cached_tokens, 4U);
  }
}

TEST_F(SchedulerTest, WhatAnAbortedSequenceComputedIsCached) {
  options_.engine = model::Engine::Sglang;
  make();
  const SequenceId id = scheduler_->submit({.prompt = {1, 2, 3},
                                            .output_tokens = 6,
                                            .answer = {.hash = 7, .begun = 0},
                                            .answer_tokens = 6});
  step();
  step();
  scheduler_->abort(id);
  EXPECT_EQ(pool_->cached(), 1U);
  EXPECT_EQ(pool_->available(), pool_->total());
}

TEST_F(SchedulerTest, TheEndTokenIsNoToken) {
  make();
  scheduler_->submit({.prompt = {1, 2, 3}, .output_tokens = 2, .answer_tokens = 0});
  step();
  step();
  EXPECT_EQ(pool_->cached(), 0U);
}

TEST_F(SchedulerTest, AHeldSequenceKeepsItsSeatAndIsSilent) {
  make();
  const SequenceId held = submit(3, 5);
  EXPECT_EQ(step().size(), 1U);
  scheduler_->hold(held);
  EXPECT_FALSE(scheduler_->begin_step());
  EXPECT_EQ(scheduler_->running(), 1U);
  scheduler_->abort(held);
  EXPECT_EQ(scheduler_->running(), 0U);
}

TEST_F(SchedulerTest, SaysWhatCanNeverRun) {
  make(4);
  EXPECT_TRUE(scheduler_->fits(12, 4));
  EXPECT_FALSE(scheduler_->fits(13, 4));
}

TEST_F(SchedulerTest, SeedVariesStepTimesByAtMostATenth) {
  options_.seed = 42;
  options_.decode_ms = 10;
  make();
  submit(1, 300);
  bool varied = false;
  for (int i = 0; i < 200; ++i) {
    const auto duration = scheduler_->begin_step();
    ASSERT_TRUE(duration);
    EXPECT_GE(*duration, 9ms);
    EXPECT_LE(*duration, 11ms + 1ms);
    varied |= *duration != 10ms;
    scheduler_->finish_step();
  }
  EXPECT_TRUE(varied);
}

}  // namespace
}  // namespace baton::sim
