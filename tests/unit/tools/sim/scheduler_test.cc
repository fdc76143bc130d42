// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/scheduler.h"

#include "tools/sim/engine_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace baton::sim {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class SchedulerTest : public testing::Test {
 protected:
  Scheduler& make(std::uint32_t blocks = 100) {
    options_.block_size = 4;
    pool_.emplace(blocks, options_.block_size, PoolSettings{.recording = true});
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

  // As `submit`, for a prompt that counts up from `first`.
  SequenceId submit_counting(TokenId first, std::size_t prompt, std::uint32_t output = 1) {
    std::vector<TokenId> tokens(prompt);
    std::iota(tokens.begin(), tokens.end(), first);
    return scheduler_->submit({.prompt = std::move(tokens), .output_tokens = output});
  }
  // How many blocks each store since the last look tells of.
  std::vector<std::size_t> told() {
    std::vector<std::size_t> blocks;
    for (const BlockChange& change : pool_->take_changes()) {
      if (const auto* stored = std::get_if<BlocksStored>(&change)) {
        blocks.push_back(stored->hashes.size());
      }
    }
    return blocks;
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

class ChunkedPrefillTest : public SchedulerTest {
 protected:
  ChunkedPrefillTest() {
    options_.decode_ms = 0;
    options_.prefill_tokens_per_second = 1000;
    options_.max_batched_tokens = 8;
  }
};

TEST_F(ChunkedPrefillTest, ALongPromptTakesSeveralStepsAndSpeaksInTheLast) {
  make();
  submit(20, 2);
  EXPECT_EQ(scheduler_->begin_step(), 8ms);
  EXPECT_TRUE(scheduler_->finish_step().empty());
  EXPECT_EQ(scheduler_->begin_step(), 8ms);
  EXPECT_TRUE(scheduler_->finish_step().empty());
  EXPECT_EQ(scheduler_->begin_step(), 4ms);
  const auto first = scheduler_->finish_step();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(first[0].first);
  EXPECT_EQ(scheduler_->begin_step(), 0ms);
  EXPECT_TRUE(scheduler_->finish_step().at(0).last);
}

TEST_F(ChunkedPrefillTest, PromptsShareAStepInArrivalOrder) {
  make();
  const SequenceId a = submit(5, 1);
  const SequenceId b = submit(5, 1);
  const SequenceId c = submit(1, 1);  // would fit the first step's rest, but does not overtake
  const auto first = step();
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].sequence, a);
  EXPECT_EQ(scheduler_->running(), 1U);
  EXPECT_EQ(scheduler_->waiting(), 1U);
  const auto second = step();
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].sequence, b);
  EXPECT_EQ(second[1].sequence, c);
}

TEST_F(ChunkedPrefillTest, DecodesComeFirst) {
  make();
  submit(3, 10);
  submit(3, 10);
  EXPECT_EQ(step().size(), 2U);
  submit(20, 1);
  EXPECT_EQ(scheduler_->begin_step(), 6ms);  // two of the eight tokens are the others'
  EXPECT_EQ(scheduler_->finish_step().size(), 2U);
  EXPECT_EQ(scheduler_->begin_step(), 6ms);
  EXPECT_EQ(scheduler_->finish_step().size(), 2U);
  EXPECT_EQ(scheduler_->begin_step(), 6ms);
  EXPECT_EQ(scheduler_->finish_step().size(), 2U);
  EXPECT_EQ(scheduler_->begin_step(), 2ms);
  EXPECT_EQ(scheduler_->finish_step().size(), 3U);
}

TEST_F(ChunkedPrefillTest, ZeroIsNoLimit) {
  options_.max_batched_tokens = 0;
  make(10000);
  submit(30000, 1);
  submit(4000, 1);
  EXPECT_EQ(scheduler_->begin_step(), 34s);
  EXPECT_EQ(scheduler_->finish_step().size(), 2U);
}

TEST_F(ChunkedPrefillTest, BlocksAreToldOfAsTheyAreComputed) {
  make();
  submit_counting(1, 22);
  step();
  EXPECT_THAT(told(), ElementsAre(2U));
  EXPECT_EQ(pool_->cached(), 2U);
  step();
  EXPECT_THAT(told(), ElementsAre(2U));
  step();
  EXPECT_THAT(told(), ElementsAre(1U));
  EXPECT_EQ(pool_->cached(), 5U);
  EXPECT_EQ(pool_->available(), pool_->total());
}

TEST_F(ChunkedPrefillTest, AFollowerHitsWhatIsComputedWhenItIsAdmitted) {
  options_.max_batched_tokens = 10;
  make();
  const SequenceId first = submit_counting(1, 15);
  step();  // ten of fifteen
  const SequenceId second = submit_counting(1, 15);
  // Five tokens end the first prompt; the second is admitted behind them and finds three blocks.
  EXPECT_EQ(scheduler_->begin_step(), 8ms);
  const auto produced = scheduler_->finish_step();
  ASSERT_EQ(produced.size(), 2U);
  EXPECT_EQ(produced[0].sequence, first);
  EXPECT_EQ(produced[0].cached_tokens, 0U);
  EXPECT_EQ(produced[1].sequence, second);
  EXPECT_EQ(produced[1].cached_tokens, 12U);
  EXPECT_EQ(pool_->available(), pool_->total());
}

TEST_F(ChunkedPrefillTest, AFollowerInTheSameStepHitsTheOneBeforeIt) {
  options_.max_batched_tokens = 0;
  make();
  const SequenceId aborted = submit_counting(1, 20, 5);
  submit_counting(1, 20);
  EXPECT_EQ(scheduler_->begin_step(), 24ms);  // the second finds four of its five blocks
  scheduler_->abort(aborted);
  const auto produced = scheduler_->finish_step();
  ASSERT_EQ(produced.size(), 1U);
  EXPECT_EQ(produced[0].cached_tokens, 16U);
  EXPECT_EQ(pool_->available(), pool_->total());
}

TEST_F(ChunkedPrefillTest, AnAbortBetweenChunksKeepsWhatWasComputed) {
  make();
  const SequenceId id = submit_counting(1, 20);
  step();
  scheduler_->abort(id);
  EXPECT_EQ(pool_->available(), pool_->total());
  EXPECT_FALSE(scheduler_->begin_step());
  submit_counting(1, 20);
  EXPECT_EQ(scheduler_->begin_step(), 8ms);
  EXPECT_TRUE(scheduler_->finish_step().empty());
  EXPECT_EQ(scheduler_->begin_step(), 4ms);
  EXPECT_EQ(scheduler_->finish_step().at(0).cached_tokens, 8U);
}

TEST_F(ChunkedPrefillTest, WhatWasFetchedNeedsNoBudgetButOneToken) {
  make(200);
  for (int i = 0; i < 9; ++i) {
    scheduler_->submit({.prompt = std::vector<TokenId>(30, next_token_++),
                        .output_tokens = 2,
                        .fetched_tokens = 30});
  }
  EXPECT_EQ(scheduler_->begin_step(), 0ms);
  EXPECT_EQ(scheduler_->finish_step().size(), 8U);
  EXPECT_EQ(scheduler_->waiting(), 1U);
}

TEST_F(ChunkedPrefillTest, TheBlocksOfAPrefillInPiecesCarryTheWholePrompt) {
  make();
  std::vector<TokenId> prompt(19);
  std::iota(prompt.begin(), prompt.end(), 1);
  scheduler_->submit({.prompt = prompt, .output_tokens = 1, .keep_blocks = true});
  EXPECT_TRUE(step().empty());
  EXPECT_TRUE(step().empty());
  const auto produced = step();
  ASSERT_EQ(produced.size(), 1U);
  std::vector<TokenId> carried;
  for (const BlockId block : produced[0].kept_blocks) {
    std::ranges::copy(pool_->tokens_of(block), std::back_inserter(carried));
  }
  EXPECT_EQ(carried, prompt);
}

// Whatever the budget, the same prompts leave the same cache behind and take the same time.
TEST_F(ChunkedPrefillTest, TheBudgetChangesNeitherTheCacheNorTheWork) {
  std::optional<std::uint32_t> cached;
  for (const std::uint32_t budget : {0U, 1000U, 64U, 7U}) {
    options_.max_batched_tokens = budget;
    options_.max_seqs = 4;
    make(1000);
    for (TokenId i = 0; i < 20; ++i) submit_counting(1000 * i, 10 + 13 * i, 1);
    std::chrono::nanoseconds time{};
    std::size_t produced = 0;
    while (const auto duration = scheduler_->begin_step()) {
      time += *duration;
      produced += scheduler_->finish_step().size();
    }
    EXPECT_EQ(produced, 20U);
    EXPECT_EQ(time, 2670ms);  // 20 * 10 + 13 * (0 + … + 19)
    EXPECT_EQ(pool_->available(), pool_->total());
    EXPECT_EQ(cached.value_or(pool_->cached()), pool_->cached());
    cached = pool_->cached();
  }
}

TEST_F(SchedulerTest, WaitsForAPlaceInTheBatch) {
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

TEST_F(SchedulerTest, AHeldSequenceKeepsItsPlaceAndIsSilent) {
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

// Steps as those of real engines: 1 ms a token and 5 ms at least, 2 µs for a pair of tokens that
// attend, 1 µs for a token of context.
class StepTimesTest : public SchedulerTest {
 protected:
  StepTimesTest() {
    options_.decode_ms = 0;
    options_.prefill_tokens_per_second = 1000;
    options_.step_floor_ms = 5;
    options_.attention_ns_per_pair = 2000;
    options_.decode_ns_per_context_token = 1000;
  }
  static double ms_of(std::optional<std::chrono::nanoseconds> duration) {
    return std::chrono::duration<double, std::milli>(duration.value()).count();
  }
};

TEST_F(StepTimesTest, AStepComputesAtLeastAsLongAsTheFloor) {
  options_.attention_ns_per_pair = 0;
  make();
  submit(2, 1);
  EXPECT_EQ(scheduler_->begin_step(), 5ms);
  scheduler_->finish_step();
  submit(2, 1);
  submit(3, 1);
  EXPECT_EQ(scheduler_->begin_step(), 5ms);
  scheduler_->finish_step();
  submit(3, 1);
  submit(3, 1);
  EXPECT_EQ(scheduler_->begin_step(), 6ms);
}

TEST_F(StepTimesTest, TheServersShareIsAddedToTheFloor) {
  options_.decode_ms = 2;
  options_.decode_ms_per_seq = 0.5;
  make();
  submit(2, 1);
  EXPECT_EQ(scheduler_->begin_step(), 2ms + 500us + 5ms + 4us);
}

TEST_F(StepTimesTest, DecodingReadsAContextThatGrows) {
  make();
  submit(10, 4);
  EXPECT_EQ(scheduler_->begin_step(), 10ms + 100us);  // 10 * 10 / 2 pairs
  scheduler_->finish_step();
  submit(20, 3);
  EXPECT_EQ(scheduler_->begin_step(), 21ms + 400us + 11us);  // one decodes beside the prompt
  scheduler_->finish_step();
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 12us + 21us);
  scheduler_->finish_step();
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 13us + 22us);
  scheduler_->finish_step();
  EXPECT_FALSE(scheduler_->begin_step());
}

TEST_F(StepTimesTest, APromptInPiecesSharesItsStepsWithThoseThatDecode) {
  options_.max_batched_tokens = 8;
  make();
  submit(3, 10);
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 9us);
  scheduler_->finish_step();
  submit(16, 2);
  // Seven of its tokens beside one that decodes, then seven more that attend to the first, too.
  EXPECT_EQ(scheduler_->begin_step(), 8ms + 49us + 4us);
  EXPECT_EQ(scheduler_->finish_step().size(), 1U);
  EXPECT_EQ(scheduler_->begin_step(), 8ms + (98us + 49us) + 5us);
  EXPECT_EQ(scheduler_->finish_step().size(), 1U);
  // Two are left: with the other's token less than the floor, which counts once.
  EXPECT_EQ(scheduler_->begin_step(), 5ms + (56us + 4us) + 6us);
  EXPECT_EQ(scheduler_->finish_step().size(), 2U);
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 7us + 17us);
}

TEST_F(StepTimesTest, AttentionOfAPromptIsTheSameInAnyPieces) {
  options_.step_floor_ms = 0;
  for (const std::uint32_t budget : {0U, 1000U, 64U, 7U}) {
    options_.max_batched_tokens = budget;
    make(300);
    submit(500, 1);
    double time_ms = 0;
    while (const auto duration = scheduler_->begin_step()) {
      time_ms += ms_of(duration);
      scheduler_->finish_step();
    }
    EXPECT_NEAR(time_ms, 500 + 250, 1e-3) << budget;
  }
}

TEST_F(StepTimesTest, WhatIsCachedIsAttendedToAndNotComputed) {
  make();
  submit_counting(1, 12);
  step();
  submit_counting(1, 20);  // twelve of them cached
  EXPECT_EQ(scheduler_->begin_step(), 8ms + 2us * (8 * 12 + 32));
}

TEST_F(StepTimesTest, AFetchedPromptDecodesFromItsFirstStepOn) {
  make();
  scheduler_->submit({.prompt = std::vector<TokenId>(30, next_token_++),
                      .output_tokens = 2,
                      .fetched_tokens = 30});
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 30us);
  EXPECT_EQ(scheduler_->prefill_tokens(), 0U);
  scheduler_->finish_step();
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 31us);
}

TEST_F(StepTimesTest, AHeldSequenceCostsNothing) {
  make();
  const SequenceId held = submit(3, 5);
  submit(3, 5);
  step();
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 8us);
  scheduler_->finish_step();
  scheduler_->hold(held);
  EXPECT_EQ(scheduler_->begin_step(), 5ms + 5us);
}

TEST_F(StepTimesTest, AProfileIsWhatItsModelTakes) {
  const EngineProfile& profile = *find_profile("h200-8b");
  profile.apply(options_);
  make(1000);
  submit(3000, 2);
  StepLoad prompt;
  prompt.sequences = 1;
  prompt.add_piece(3000, 0);
  EXPECT_NEAR(ms_of(scheduler_->begin_step()), profile.step.ms(prompt), 1e-5);
  scheduler_->finish_step();
  StepLoad decode;
  decode.sequences = 1;
  decode.add_decode(3001);
  EXPECT_NEAR(ms_of(scheduler_->begin_step()), profile.step.ms(decode), 1e-5);
}

}  // namespace
}  // namespace baton::sim
