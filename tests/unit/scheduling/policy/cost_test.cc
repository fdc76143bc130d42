// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/cost.h"

#include "scheduling/policy/constraints.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace baton::scheduling {
namespace {

constexpr LegSize kLeg{.tokens = 160, .block_size = 16, .track_prefill = true};
const CostFacts kFirst{.prefill_tokens = 320, .device = 6, .host = 2, .decode_blocks = 14};
const CostFacts kSecond{.prefill_tokens = 0, .decode_blocks = 12};
const CostFacts kThird{.prefill_tokens = 64, .device = 8, .decode_blocks = 9};

double total(const config::Cost& options, const LegSize& leg, const CostFacts& facts,
             double least_prefill_tokens = 0) {
  return cost_of(options, leg, facts, least_prefill_tokens).total;
}

TEST(Cost, IsTheReferencesWorkedExample) {
  EXPECT_NEAR(total({}, kLeg, kFirst), 36.5, 1e-9);
  EXPECT_NEAR(total({}, kLeg, kSecond), 22, 1e-9);
  EXPECT_NEAR(total({}, kLeg, kThird), 15, 1e-9);
}

TEST(Cost, IsTheReferencesWorkedExampleWithDecay) {
  const config::Cost options{.overlap_score_credit_decay = 1};
  EXPECT_NEAR(total(options, kLeg, kFirst), 40.5, 1e-9);
  EXPECT_NEAR(total(options, kLeg, kSecond), 22, 1e-9);
  EXPECT_NEAR(total(options, kLeg, kThird), 121.0 / 7, 1e-9);  // 17.285714...
}

TEST(Cost, NamesItsTerms) {
  const config::Cost options{.overlap_score_credit_decay = 1, .decode_active_request_weight = 0.5};
  CostFacts facts = kFirst;
  facts.requests = 3;
  facts.preference = 2;
  const CostTerms terms = cost_of(options, kLeg, facts, 0);
  EXPECT_NEAR(terms.raw_prefill_blocks, 30, 1e-9);
  EXPECT_NEAR(terms.decay, 1.0 / 3, 1e-9);
  EXPECT_NEAR(terms.credit, 3.5, 1e-9);
  EXPECT_NEAR(terms.prefill, 26.5, 1e-9);
  EXPECT_NEAR(terms.decode_blocks, 14, 1e-9);
  EXPECT_NEAR(terms.requests, 1.5, 1e-9);
  EXPECT_NEAR(terms.preference, 2, 1e-9);
  EXPECT_NEAR(terms.total, 84, 1e-9);
}

TEST(Cost, DecaysByWhatIsAheadOfTheLeastBusyOne) {
  const config::Cost options{.overlap_score_credit_decay = 1};
  // 20 blocks, of which 10 are everywhere: one prompt's worth ahead.
  EXPECT_NEAR(cost_of(options, kLeg, kFirst, 160).decay, 0.5, 1e-9);
  EXPECT_NEAR(cost_of(options, kLeg, kFirst, 320).decay, 1, 1e-9);
  // A prompt's last block counts as one: 150 tokens are 10 blocks.
  EXPECT_NEAR(cost_of(options, {.tokens = 150}, kFirst, 160).decay, 0.5, 1e-9);
  EXPECT_NEAR(cost_of({.overlap_score_credit_decay = 3}, kLeg, kFirst, 160).decay, 0.25, 1e-9);
}

TEST(Cost, WeighsEachTier) {
  const config::Cost options{.overlap_score_credit = 0.9,
                             .host_cache_hit_weight = 0.5,
                             .disk_cache_hit_weight = 0.2,
                             .shared_cache_multiplier = 0.1};
  const CostFacts facts{.prefill_tokens = 0, .device = 2, .host = 3, .disk = 1, .shared = 4};
  EXPECT_NEAR(cost_of(options, kLeg, facts, 0).credit, 1.8 + 1.5 + 0.2 + 0.4, 1e-9);
  EXPECT_NEAR(total(options, kLeg, facts), 10 - 3.9, 1e-9);
  // The credit and the shared cache have no part in what is cached.
  EXPECT_NEAR(effective_overlap(options, facts), 3.7, 1e-9);
  EXPECT_EQ(cached_tokens(options, kLeg, facts), 59U);  // 59.2
}

TEST(Cost, ScalesThePrefillAlone) {
  EXPECT_NEAR(total({.prefill_load_scale = 2}, kLeg, kFirst), 2 * 22.5 + 14, 1e-9);
  EXPECT_NEAR(total({.prefill_load_scale = 0}, kLeg, kFirst), 14, 1e-9);
}

TEST(Cost, CountsNoPrefillWhereThatIsNotTracked) {
  LegSize leg = kLeg;
  leg.track_prefill = false;
  const CostTerms terms = cost_of({.overlap_score_credit_decay = 1}, leg, kFirst, 0);
  EXPECT_NEAR(terms.raw_prefill_blocks, 0, 1e-9);
  EXPECT_NEAR(terms.decay, 1, 1e-9);
  EXPECT_NEAR(terms.total, 14, 1e-9);
}

TEST(Cost, TakesTheCreditOffADecodeWorkersBlocksWherePrefillIsNotTracked) {
  LegSize leg = kLeg;
  leg.track_prefill = false;
  leg.decode_worker = true;
  CostFacts facts = kFirst;
  facts.requests = 4;
  const config::Cost options{.overlap_score_credit_decay = 1, .decode_active_request_weight = 0.25};
  EXPECT_NEAR(total(options, leg, facts), 14 - 7.5 + 1, 1e-9);
  facts.device = 100;
  EXPECT_NEAR(total(options, leg, facts), 1, 1e-9);  // never below zero
  // Where caches do not count, nothing is taken off; nor where prefill is tracked.
  EXPECT_NEAR(total({.overlap_score_credit = 0}, leg, kFirst), 14, 1e-9);
  leg.track_prefill = true;
  EXPECT_NEAR(total({}, leg, kFirst), 36.5, 1e-9);
}

TEST(Cost, OfARankWhoseLoadIsUnknownIsThatOfThePromptAlone) {
  CostFacts facts = kFirst;
  facts.prefill_tokens.reset();
  const CostTerms terms = cost_of({.overlap_score_credit_decay = 1}, kLeg, facts, 0);
  EXPECT_NEAR(terms.raw_prefill_blocks, 10, 1e-9);
  EXPECT_NEAR(terms.decay, 1, 1e-9);
  EXPECT_NEAR(terms.total, 10 - 7.5 + 14, 1e-9);
}

TEST(Cost, TakesTheOverlapWhereItIsMoreThanThePrompt) {
  const CostFacts facts{.prefill_tokens = 32, .device = 12, .decode_blocks = 1};
  const CostTerms terms = cost_of({}, kLeg, facts, 32);
  EXPECT_NEAR(terms.raw_prefill_blocks, 2 + 12, 1e-9);
  EXPECT_NEAR(terms.total, 2 + 1, 1e-9);
  EXPECT_EQ(cached_tokens({}, kLeg, facts), 160U);
}

TEST(Cost, NeverFallsBelowZeroForCredit) {
  const CostFacts facts{.prefill_tokens = 0, .device = 10, .decode_blocks = 3};
  EXPECT_NEAR(total({.overlap_score_credit = 5}, kLeg, facts), 3, 1e-9);
}

TEST(Cost, IsMultipliedByWhatTaintsAreWorth) {
  const Constraints preferred{.required = {}, .preferred = {{"gold", 1}, {"other", 7}}};
  const Constraints disliked{.required = {}, .preferred = {{"gold", -0.25}, {"slow", -0.25}}};
  const std::vector<std::string> taints{"gold", "slow"};
  CostFacts facts = kThird;
  facts.preference = preferred.preference(taints);
  EXPECT_NEAR(facts.preference, 0.466921, 5e-7);
  EXPECT_NEAR(total({}, kLeg, facts), 15 * std::exp(-std::tanh(1.0)), 1e-9);
  facts.preference = disliked.preference(taints);
  EXPECT_NEAR(facts.preference, 1.587431, 5e-7);
  EXPECT_NEAR(total({}, kLeg, facts), 15 * std::exp(std::tanh(0.5)), 1e-9);
}

TEST(Cost, RoundsCachedTokens) {
  const config::Cost options{.host_cache_hit_weight = 0.75};
  const LegSize leg{.tokens = 1000, .block_size = 10};
  EXPECT_EQ(cached_tokens(options, leg, {.host = 1}), 8U);  // 7.5
  EXPECT_EQ(cached_tokens(options, leg, {.device = 1}), 10U);
  EXPECT_EQ(cached_tokens(options, leg, {}), 0U);
}

TEST(Cost, OfAnEmptyPromptIsFinite) {
  const LegSize leg{.tokens = 0};
  const CostTerms terms = cost_of({.overlap_score_credit_decay = 1}, leg, kFirst, 0);
  EXPECT_NEAR(terms.decay, 1.0 / 21, 1e-9);  // as one of a single block
  EXPECT_EQ(cached_tokens({}, leg, kFirst), 0U);
}

// Any options, any request, any facts that has no more of the prompt than there is.
struct Drawn {
  explicit Drawn(std::mt19937_64& random) {
    const auto unit = [&random] { return std::uniform_real_distribution(0.0, 1.0)(random); };
    const auto often_zero = [&] { return unit() < 0.3 ? 0.0 : unit(); };
    options = {.overlap_score_credit = 2 * often_zero(),
               .overlap_score_credit_decay = 3 * often_zero(),
               .prefill_load_scale = 2 * often_zero(),
               .decode_active_request_weight = often_zero(),
               .host_cache_hit_weight = often_zero(),
               .disk_cache_hit_weight = often_zero(),
               .shared_cache_multiplier = often_zero()};
    leg.tokens = 1 + random() % 2000;
    leg.block_size = 1U << (random() % 7);
    leg.track_prefill = unit() < 0.7;
    leg.decode_worker = unit() < 0.5;
    const double blocks = std::floor(static_cast<double>(leg.tokens) / leg.block_size);
    facts.device = std::floor(unit() * blocks / 3);
    facts.host = std::floor(unit() * blocks / 3);
    facts.disk = std::floor(unit() * (blocks / 3 - 1));
    if (facts.disk < 0) facts.disk = 0;
    facts.shared = std::floor(unit() * blocks);
    facts.decode_blocks = unit() * 500;
    facts.requests = static_cast<std::int64_t>(random() % 50);
    if (unit() < 0.8) facts.prefill_tokens = std::floor(unit() * 10000);
    facts.preference = std::exp(2 * unit() - 1);
    least = unit() * facts.prefill_tokens.value_or(0);
  }
  double cost() const { return total(options, leg, facts, least); }

  config::Cost options;
  LegSize leg;
  CostFacts facts;
  double least = 0;
};

constexpr double kRounding = 1e-9;

TEST(Cost, IsNeverHigherForMoreOverlap) {
  std::mt19937_64 random{7};
  for (int round = 0; round < 20'000; ++round) {
    Drawn drawn(random);
    const double before = drawn.cost();
    for (double CostFacts::* tier :
         {&CostFacts::device, &CostFacts::host, &CostFacts::disk, &CostFacts::shared}) {
      Drawn more = drawn;
      const double left = static_cast<double>(drawn.leg.tokens) / drawn.leg.block_size -
                          drawn.facts.device - drawn.facts.host - drawn.facts.disk;
      if (left < 1) continue;
      more.facts.*tier += 1;
      EXPECT_LE(more.cost(), before + kRounding) << "round " << round;
    }
  }
}

TEST(Cost, IsNeverLowerForMoreLoad) {
  std::mt19937_64 random{8};
  for (int round = 0; round < 20'000; ++round) {
    const Drawn drawn(random);
    const double before = drawn.cost();
    Drawn more = drawn;
    if (more.facts.prefill_tokens) *more.facts.prefill_tokens += 100;
    EXPECT_GE(more.cost(), before - kRounding) << "prefill, round " << round;
    more = drawn;
    more.facts.decode_blocks += 3;
    EXPECT_GE(more.cost(), before - kRounding) << "decode, round " << round;
    more = drawn;
    more.facts.requests += 1;
    EXPECT_GE(more.cost(), before - kRounding) << "requests, round " << round;
  }
}

}  // namespace
}  // namespace baton::scheduling
