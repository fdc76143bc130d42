// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index.h"
#include "unit/kvcache/index/index_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace baton::kvcache {
namespace {

constexpr std::uint32_t kHolders = 10'000;

// Role. Ten thousand caches, of which most have the beginning of one prompt, in the index and in the
//   model.
class Fleet {
 public:
  explicit Fleet(std::uint32_t seed) : chance_(seed) {
    for (std::uint32_t i = 0; i < kHolders; ++i) join();
    for (const Slot slot : slots_) {
      for (std::uint32_t prompts = 1 + below(2); prompts > 0; --prompts) store(slot);
    }
  }

  void churn(std::uint32_t steps) {
    for (; steps > 0; --steps) {
      const std::size_t at = below(kHolders);
      const std::uint32_t what = below(10);
      if (what < 5) {
        store(slots_[at]);
      } else if (what < 8) {
        remove(slots_[at]);
      } else if (what == 8) {
        index_.clear(slots_[at]);
        model_.clear(slots_[at]);
      } else {
        index_.leave(slots_[at]);
        model_.leave(slots_[at]);
        std::swap(slots_[at], slots_.back());
        slots_.pop_back();
        join();
      }
    }
  }

  void check() {
    for (int i = 0; i < 3; ++i) {
      std::vector<SequenceHash> prompt;
      for (const NewBlock& block : any_prompt())
        prompt.push_back(prompt.empty() ? first_sequence(block.block)
                                        : next_sequence(prompt.back(), block.block));
      std::vector<Match> found;
      index_.match(prompt, found);
      std::ranges::sort(found, {}, &Match::holder);
      const auto expected = model_.match(prompt);
      EXPECT_GT(expected.size(), kHolders / 2);
      ASSERT_EQ(found, expected);
    }
    ASSERT_EQ(index_.size().blocks, model_.blocks());
    ASSERT_EQ(index_.size().memberships, model_.memberships());
  }

  void leave_all() {
    for (const Slot slot : slots_) index_.leave(slot);
    EXPECT_EQ(index_.size().blocks, 0U);
    EXPECT_EQ(index_.size().memberships, 0U);
  }

 private:
  std::uint32_t below(std::uint32_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(chance_);
  }
  Tier any_tier() { return below(4) == 0 ? Tier::Host : Tier::Device; }

  void join() {
    const Holder holder{.worker = {++workers_}, .rank = 0};
    slots_.push_back(index_.join(holder));
    model_.join(slots_.back(), holder);
  }
  // Most begin alike, and part somewhere.
  std::vector<NewBlock> any_prompt() {
    std::vector<NewBlock> blocks;
    std::uint64_t kind = 0;
    SequenceHash name = 1;
    for (std::uint32_t length = 1 + below(12); length > 0; --length) {
      if (!blocks.empty() && below(8) == 0) kind = below(3);
      name = next_sequence(name, kind);
      blocks.push_back({.engine = name, .block = kind});
    }
    return blocks;
  }
  void store(Slot slot) {
    const auto blocks = any_prompt();
    const Tier tier = any_tier();
    ASSERT_EQ(index_.store(slot, {}, blocks, tier), model_.store(slot, {}, blocks, tier));
  }
  void remove(Slot slot) {
    std::vector<EngineHash> names;
    for (const NewBlock& block : any_prompt()) names.push_back(block.engine);
    std::ranges::reverse(names);
    names.resize(1 + below(static_cast<std::uint32_t>(names.size())));
    const Tier tier = any_tier();
    ASSERT_EQ(index_.remove(slot, names, tier), model_.remove(slot, names, tier));
  }

  std::mt19937 chance_;
  Index index_{{}};
  IndexModel model_;
  std::vector<Slot> slots_;
  std::uint64_t workers_ = 0;
};

TEST(IndexFleet, TenThousandHoldersAreToldApartExactly) {
  Fleet fleet(1);
  for (int round = 0; round < 4; ++round) {
    ASSERT_NO_FATAL_FAILURE(fleet.check());
    fleet.churn(4'000);
  }
  ASSERT_NO_FATAL_FAILURE(fleet.check());
  fleet.leave_all();
}

}  // namespace
}  // namespace baton::kvcache
