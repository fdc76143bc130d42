// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/index/index.h"
#include "unit/kvcache/index/index_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace baton::kvcache {
namespace {

// How a run's operations are chosen.
struct Mixture {
  std::string name;
  std::uint32_t tiers = 1;         // how many are used
  std::uint32_t engine_names = 0;  // 0: a block's name follows from its prefix; else that many
  std::size_t most = IndexModel::kUnbounded;
  std::size_t most_names = IndexModel::kUnbounded;  // of all slots
  std::uint32_t kinds = 3;                          // of blocks that may follow one
  std::size_t depth = 24;
  int steps_between_checks = 1;
};

class Trial {
 public:
  Trial(const Mixture& mixture, std::uint32_t seed)
      : mixture_(mixture),
        chance_(seed),
        index_({.blocks = mixture.most, .memberships = mixture.most_names}),
        model_(mixture.most, mixture.most_names) {
    for (std::uint32_t i = 0; i < 8; ++i) join();
  }

  void step() {
    const std::uint32_t what = below(100);
    const Slot slot = any_slot();
    if (what < 45) {
      store(slot);
    } else if (what < 80) {
      remove(slot);
    } else if (what < 90) {
      const auto names = some_names(slot);
      const Tier tier = any_tier();
      ASSERT_EQ(index_.copy(slot, names, tier), model_.copy(slot, names, tier));
    } else if (what < 92 && below(4) == 0) {
      index_.clear(slot);
      model_.clear(slot);
    } else if (what < 94 && below(4) == 0) {
      index_.leave(slot);
      model_.leave(slot);
      slots_.erase(std::ranges::find(slots_, slot));
      join();
    }
  }

  void check() {
    for (int i = 0; i < 6; ++i) {
      const auto prompt = any_prompt();
      index_.match(prompt, found_);
      std::ranges::sort(found_, {}, &Match::holder);
      ASSERT_EQ(found_, model_.match(prompt));
      check_each(prompt);
    }
    const Slot slot = any_slot();
    ASSERT_EQ(index_.holding(slot).blocks, model_.holding(slot));
    ASSERT_EQ(index_.size().blocks, model_.blocks());
    ASSERT_EQ(index_.size().memberships, model_.memberships());
  }

  void check_each(std::span<const SequenceHash> prompt) const {
    std::vector<Match> each;
    for (const Slot slot : slots_) {
      if (const auto match = index_.match_one(slot, prompt)) each.push_back(*match);
    }
    std::ranges::sort(each, {}, &Match::holder);
    ASSERT_EQ(each, found_);
  }

  void check_list() {
    const Slot slot = any_slot();
    std::map<EngineHash, Index::Held> listed;
    index_.visit(slot, [&](const Index::Held& held) {
      if (held.parent) EXPECT_TRUE(listed.contains(*held.parent));
      EXPECT_TRUE(listed.emplace(held.engine, held).second);
    });
    ASSERT_EQ(listed.size(), model_.list(slot).size());
    for (const auto& [name, block] : model_.list(slot)) {
      ASSERT_TRUE(listed.contains(name));
      const Index::Held& held = listed.at(name);
      EXPECT_EQ(held.sequence, block.sequence);
      EXPECT_EQ(held.tiers, block.tiers);
      const auto before = model_.parent_of(block.sequence);
      EXPECT_EQ(held.first, !before.has_value());
      const bool has_before =
          before && std::ranges::any_of(model_.list(slot), [&](const auto& other) {
            return other.second.sequence == *before;
          });
      ASSERT_EQ(held.parent.has_value(), has_before);
      if (has_before) EXPECT_EQ(listed.at(*held.parent).sequence, *before);
    }
  }

  void leave_all() {
    for (const Slot slot : slots_) index_.leave(slot);
    EXPECT_EQ(index_.size().blocks, 0U);
    EXPECT_EQ(index_.size().memberships, 0U);
  }

 private:
  std::uint32_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::uint32_t>(
        0, static_cast<std::uint32_t>(limit) - 1)(chance_);
  }
  Slot any_slot() { return slots_[below(slots_.size())]; }
  Tier any_tier() { return static_cast<Tier>(below(mixture_.tiers)); }

  void join() {
    const Holder holder{.worker = {next_worker_ / 2 + 1}, .rank = next_worker_ % 2};
    ++next_worker_;
    slots_.push_back(index_.join(holder));
    model_.join(slots_.back(), holder);
  }

  EngineHash name_of(SequenceHash sequence) {
    if (mixture_.engine_names > 0) return below(mixture_.engine_names);
    return sequence * 3;
  }

  void store(Slot slot) {
    std::optional<EngineHash> parent;
    std::optional<SequenceHash> before;
    const auto& held = model_.list(slot);
    const std::uint32_t kind = below(10);
    if (kind < 6 && !held.empty()) {
      const auto at = std::next(held.begin(), below(held.size()));
      parent = at->first;
      before = at->second.sequence;
    } else if (kind == 6) {
      parent = below(1000);
      if (held.contains(*parent)) before = held.at(*parent).sequence;
    }
    std::vector<NewBlock> blocks(below(mixture_.depth / 2) + 1);
    for (NewBlock& block : blocks) {
      block.block = 1 + below(below(4) == 0 ? mixture_.kinds : 1);
      before = before ? next_sequence(*before, block.block) : first_sequence(block.block);
      block.engine = name_of(*before);
    }
    const Tier tier = any_tier();
    ASSERT_EQ(index_.store(slot, parent, blocks, tier), model_.store(slot, parent, blocks, tier));
  }

  std::vector<EngineHash> some_names(Slot slot) {
    std::vector<EngineHash> names;
    const auto& held = model_.list(slot);
    for (std::uint32_t i = below(8); i-- > 0;) {
      if (held.empty() || below(12) == 0) {
        names.push_back(below(1000));
      } else {
        names.push_back(std::next(held.begin(), below(held.size()))->first);
      }
    }
    return names;
  }

  void remove(Slot slot) {
    const auto names = some_names(slot);
    const Tier tier = any_tier();
    ASSERT_EQ(index_.remove(slot, names, tier), model_.remove(slot, names, tier));
  }

  std::vector<SequenceHash> any_prompt() {
    std::vector<SequenceHash> prompt;
    for (std::uint32_t i = below(3 * mixture_.depth); i-- > 0;) {
      const BlockHash block = 1 + below(below(6) == 0 ? mixture_.kinds : 1);
      prompt.push_back(prompt.empty() ? first_sequence(block)
                                      : next_sequence(prompt.back(), block));
    }
    return prompt;
  }

  Mixture mixture_;
  std::mt19937 chance_;
  Index index_;
  IndexModel model_;
  std::vector<Slot> slots_;
  std::uint32_t next_worker_ = 0;
  std::vector<Match> found_;
};

class IndexAgainstModel : public testing::TestWithParam<Mixture> {};

TEST_P(IndexAgainstModel, Agrees) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Trial trial(GetParam(), seed);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
      trial.step();
      if (i % GetParam().steps_between_checks == 0) trial.check();
      if (i % 16 == 0) trial.check_list();
    }
    trial.leave_all();
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mixtures, IndexAgainstModel,
    testing::Values(
        Mixture{.name = "OneTier"}, Mixture{.name = "AllTiers", .tiers = 4},
        Mixture{.name = "FewNames", .tiers = 3, .engine_names = 40},
        Mixture{.name = "ManyNames", .tiers = 2, .engine_names = 4000},
        Mixture{.name = "Capped", .tiers = 2, .most = 60},
        Mixture{.name = "CappedNames", .tiers = 2, .most_names = 150},
        Mixture{.name = "CappedFewNames", .tiers = 3, .engine_names = 40, .most_names = 100},
        Mixture{.name = "CappedBoth", .tiers = 2, .most = 60, .most_names = 150},
        Mixture{.name = "Deep", .kinds = 1, .depth = 160, .steps_between_checks = 5},
        Mixture{
            .name = "DeepTiers", .tiers = 4, .kinds = 2, .depth = 100, .steps_between_checks = 9}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace baton::kvcache
