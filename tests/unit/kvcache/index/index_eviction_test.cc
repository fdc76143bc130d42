// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The index under engines that store prompts and evict blocks the way real caches do: the least used
// ones first, from the ends of chains or from anywhere, and down through the tiers.
#include "kvcache/index/index.h"
#include "unit/kvcache/index/index_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace baton::kvcache {
namespace {

// What a prompt of a workload consists of: a system prompt, a document, a question.
std::vector<NewBlock> workload_prompt(std::mt19937& random, std::uint32_t documents) {
  std::vector<BlockHash> contents;
  const auto part = [&](std::uint64_t kind, std::uint32_t blocks) {
    for (std::uint32_t i = 0; i < blocks; ++i) contents.push_back(kind * 1000 + i);
  };
  part(1, 6);
  part(100 + random() % documents, 4 + random() % 30);
  part(10'000 + random() % 1000, random() % 5);
  std::vector<NewBlock> blocks;
  SequenceHash sequence = 0;
  for (const BlockHash block : contents) {
    sequence = blocks.empty() ? first_sequence(block) : next_sequence(sequence, block);
    blocks.push_back({.engine = sequence ^ 0x5555, .block = block});
  }
  return blocks;
}

std::vector<SequenceHash> chain_of(std::span<const NewBlock> blocks) {
  std::vector<SequenceHash> result;
  for (const NewBlock& block : blocks) {
    result.push_back(result.empty() ? first_sequence(block.block)
                                    : next_sequence(result.back(), block.block));
  }
  return result;
}

enum class Evicts { Ends, Anywhere };

// Role. One rank with room for so many blocks on its device and so many in its host memory. Says of
//   each change what an engine would say.
class Cache {
 public:
  Cache(Index& index, IndexModel& model, Holder holder, std::size_t device, std::size_t host,
        Evicts evicts)
      : index_(index),
        model_(model),
        slot_(index.join(holder)),
        device_room_(device),
        host_room_(host),
        evicts_(evicts) {
    model_.join(slot_, holder);
  }

  Slot slot() const { return slot_; }

  void serve(std::span<const NewBlock> prompt, std::mt19937& random) {
    // What is cached is used again; the rest is computed and stored after it.
    std::size_t cached = 0;
    while (cached < prompt.size() && device_.contains(prompt[cached].engine)) {
      touch(prompt[cached++].engine);
    }
    const auto fresh = prompt.subspan(cached);
    if (fresh.empty()) return;
    while (device_.size() + fresh.size() > device_room_ && evict(prompt.first(cached), random)) {
    }
    if (device_.size() + fresh.size() > device_room_) return;  // too long for this cache
    std::optional<EngineHash> parent;
    if (cached > 0) parent = prompt[cached - 1].engine;
    const Applied applied = index_.store(slot_, parent, fresh, Tier::Device);
    ASSERT_EQ(applied, model_.store(slot_, parent, fresh, Tier::Device));
    ASSERT_EQ(applied.unknown_parent, 0U);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (i > 0 || parent) ++children_[i == 0 ? *parent : fresh[i - 1].engine];
      parents_[fresh[i].engine] = i == 0 ? parent : fresh[i - 1].engine;
      touch(fresh[i].engine);
    }
  }

  // How much of a prompt is here, by the cache's own account.
  std::array<std::uint32_t, kTiers> has(std::span<const NewBlock> prompt) const {
    std::array<std::uint32_t, kTiers> lengths{};
    while (lengths[0] < prompt.size() && device_.contains(prompt[lengths[0]].engine)) ++lengths[0];
    while (lengths[1] < prompt.size() && (device_.contains(prompt[lengths[1]].engine) ||
                                          host_.contains(prompt[lengths[1]].engine))) {
      ++lengths[1];
    }
    lengths[2] = lengths[3] = lengths[1];
    return lengths;
  }

 private:
  void touch(EngineHash name) {
    if (const auto found = device_.find(name); found != device_.end()) order_.erase(found->second);
    order_.push_back(name);
    device_[name] = std::prev(order_.end());
  }

  bool evict(std::span<const NewBlock> kept, std::mt19937& random) {
    std::set<EngineHash> keep;
    for (const NewBlock& block : kept) keep.insert(block.engine);
    std::vector<EngineHash> victims;
    for (const EngineHash name : order_) {
      if (keep.contains(name)) continue;
      const auto children = children_.find(name);
      const bool is_end = children == children_.end() || children->second == 0;
      if (evicts_ == Evicts::Ends && !is_end) continue;
      if (evicts_ == Evicts::Anywhere && random() % 3 == 0) continue;
      victims.push_back(name);
      if (victims.size() == 1 + random() % 7) break;
    }
    if (victims.empty()) return evicts_ == Evicts::Anywhere && order_.size() > keep.size();
    // To host memory first, as long as there is room.
    std::vector<EngineHash> moved;
    for (const EngineHash name : victims) {
      if (host_.size() < host_room_ && host_.insert(name).second) moved.push_back(name);
    }
    EXPECT_EQ(index_.copy(slot_, moved, Tier::Host), model_.copy(slot_, moved, Tier::Host));
    const Applied applied = index_.remove(slot_, victims, Tier::Device);
    EXPECT_EQ(applied, model_.remove(slot_, victims, Tier::Device));
    EXPECT_EQ(applied.done, victims.size());
    for (const EngineHash name : victims) {
      order_.erase(device_.at(name));
      device_.erase(name);
      if (const auto parent = parents_.find(name); parent != parents_.end() && parent->second) {
        --children_[*parent->second];
      }
    }
    if (host_.size() == host_room_) {  // the host's memory starts anew
      const std::vector<EngineHash> all(host_.begin(), host_.end());
      EXPECT_EQ(index_.remove(slot_, all, Tier::Host), model_.remove(slot_, all, Tier::Host));
      host_.clear();
    }
    return true;
  }

  Index& index_;
  IndexModel& model_;
  Slot slot_;
  std::size_t device_room_;
  std::size_t host_room_;
  Evicts evicts_;
  std::list<EngineHash> order_;  // the least lately used first
  std::map<EngineHash, std::list<EngineHash>::iterator> device_;
  std::set<EngineHash> host_;
  std::map<EngineHash, std::optional<EngineHash>> parents_;
  std::map<EngineHash, int> children_;
};

struct Pressure {
  std::string name;
  Evicts evicts;
  std::size_t device;
  std::size_t host;
  std::uint32_t caches;
};

class IndexUnderEviction : public testing::TestWithParam<Pressure> {};

TEST_P(IndexUnderEviction, SaysOfEachCacheWhatItHas) {
  const Pressure& pressure = GetParam();
  std::mt19937 random(37);
  Index index({});
  IndexModel model;
  std::vector<std::unique_ptr<Cache>> caches;
  for (std::uint32_t i = 0; i < pressure.caches; ++i) {
    caches.push_back(std::make_unique<Cache>(index, model, Holder{.worker = {i + 1}, .rank = 0},
                                             pressure.device, pressure.host, pressure.evicts));
  }
  for (int round = 0; round < 600 && !testing::Test::HasFailure(); ++round) {
    caches[random() % caches.size()]->serve(workload_prompt(random, 20), random);
    if (round % 5 != 0) continue;
    const auto question = workload_prompt(random, 20);
    const auto sequences = chain_of(question);
    std::vector<Match> matches;
    index.match(sequences, matches);
    std::map<Holder, std::array<std::uint32_t, kTiers>> found;
    for (const Match& match : matches) found[match.holder] = match.blocks;
    for (std::uint32_t i = 0; i < caches.size(); ++i) {
      const Holder holder{.worker = {i + 1}, .rank = 0};
      const auto expected = caches[i]->has(question);
      ASSERT_EQ(found.contains(holder), expected.back() > 0);
      if (expected.back() > 0) ASSERT_EQ(found.at(holder), expected);
    }
  }
  ASSERT_EQ(index.size().blocks, model.blocks());
  ASSERT_EQ(index.size().memberships, model.memberships());
  for (const auto& cache : caches) index.leave(cache->slot());
  EXPECT_EQ(index.size().blocks, 0U);
}

INSTANTIATE_TEST_SUITE_P(Pressures, IndexUnderEviction,
                         testing::Values(Pressure{"EndsWithoutHost", Evicts::Ends, 60, 0, 4},
                                         Pressure{"EndsWithHost", Evicts::Ends, 60, 40, 4},
                                         Pressure{"AnywhereWithoutHost", Evicts::Anywhere, 60, 0,
                                                  4},
                                         Pressure{"AnywhereWithHost", Evicts::Anywhere, 60, 40, 4},
                                         Pressure{"ManyCaches", Evicts::Anywhere, 90, 20, 40},
                                         Pressure{"RoomForAll", Evicts::Ends, 100'000, 0, 3}),
                         [](const auto& info) { return info.param.name; });

// One prompt that all have, each of them with holes of its own.
TEST(IndexWidely, ManyHoldersOfOnePromptHaveHolesOfTheirOwn) {
  constexpr std::uint32_t kMany = 600;
  constexpr std::uint32_t kLength = 260;  // three runs
  Index index({});
  std::vector<NewBlock> blocks;
  for (std::uint64_t i = 0; i < kLength; ++i) blocks.push_back({.engine = i + 1, .block = i + 7});
  const auto sequences = chain_of(blocks);
  std::mt19937 random(41);
  std::vector<Slot> slots;
  std::vector<std::set<std::uint32_t>> holes(kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    slots.push_back(index.join({.worker = {i}, .rank = 0}));
    index.store(slots[i], {}, blocks, Tier::Device);
  }
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      const std::uint32_t at = random() % kLength;
      const std::array name{blocks[at].engine};
      if (holes[i].contains(at)) {
        // Back after its parent, which may be a hole as well: then it cannot be said where it is.
        const std::optional<EngineHash> parent =
            at == 0 ? std::optional<EngineHash>() : blocks[at - 1].engine;
        const bool knows_parent = at == 0 || !holes[i].contains(at - 1);
        const Applied applied =
            index.store(slots[i], parent, std::span(blocks).subspan(at, 1), Tier::Device);
        EXPECT_EQ(applied, knows_parent ? (Applied{.done = 1}) : (Applied{.unknown_parent = 1}));
        if (knows_parent) holes[i].erase(at);
      } else {
        EXPECT_EQ(index.remove(slots[i], name, Tier::Device), (Applied{.done = 1}));
        holes[i].insert(at);
      }
    }
    std::vector<Match> matches;
    index.match(sequences, matches);
    std::map<std::uint64_t, std::uint32_t> lengths;
    for (const Match& match : matches) lengths[match.holder.worker.value] = match.blocks[0];
    for (std::uint32_t i = 0; i < kMany; ++i) {
      const std::uint32_t expected = holes[i].empty() ? kLength : *holes[i].begin();
      ASSERT_EQ(lengths.contains(i) ? lengths.at(i) : 0, expected) << i;
      const auto own = index.match_one(slots[i], sequences);
      ASSERT_EQ(own ? own->blocks[0] : 0, expected);
      ASSERT_EQ(index.holding(slots[i]).blocks[0], kLength - holes[i].size());
    }
  }
  for (const Slot slot : slots) index.clear(slot);
  EXPECT_EQ(index.size().blocks, 0U);
  EXPECT_EQ(index.size().memberships, 0U);
}

// A tree that is as wide as possible: each of many blocks is followed by many.
TEST(IndexWidely, ManyContinuationsOfEachBlockAreToldApart) {
  constexpr std::uint64_t kWays = 60;
  Index index({});
  const Slot slot = index.join({.worker = {1}, .rank = 0});
  for (std::uint64_t a = 0; a < kWays; ++a) {
    for (std::uint64_t b = 0; b < kWays; ++b) {
      const std::vector<NewBlock> blocks{{.engine = 1, .block = 1},
                                         {.engine = 1000 + a, .block = 1000 + a},
                                         {.engine = 10'000 + a * kWays + b, .block = 10'000 + b}};
      EXPECT_EQ(index.store(slot, {}, blocks, Tier::Device).no_room, 0U);
    }
  }
  EXPECT_EQ(index.size().blocks, 1 + kWays + kWays * kWays);
  const auto length = [&](std::uint64_t a, std::uint64_t b) {
    const auto found =
        index.match_one(slot, chain_of(std::vector<NewBlock>{{.engine = 0, .block = 1},
                                                             {.engine = 0, .block = 1000 + a},
                                                             {.engine = 0, .block = 10'000 + b}}));
    return found ? found->blocks[0] : 0;
  };
  // Every second of the middle ones goes; what followed them stays, and counts no more.
  for (std::uint64_t a = 0; a < kWays; a += 2) {
    index.remove(slot, std::array<EngineHash, 1>{1000 + a}, Tier::Device);
  }
  for (std::uint64_t a = 0; a < kWays; ++a) {
    for (std::uint64_t b = 0; b < kWays; b += 7) {
      ASSERT_EQ(length(a, b), a % 2 == 0 ? 1U : 3U);
    }
  }
  EXPECT_EQ(length(kWays, 0), 1U);
  EXPECT_EQ(length(1, kWays), 2U);
}

// A prompt's runs end at 128 blocks. Each length around that is found, stored again and cut.
TEST(IndexWidely, ChainsAroundTheLengthOfARunAreExact) {
  for (const std::size_t size : {1U, 2U, 127U, 128U, 129U, 255U, 256U, 257U, 384U, 385U}) {
    Index index({});
    const Slot slot = index.join({.worker = {1}, .rank = 0});
    std::vector<NewBlock> blocks;
    for (std::uint64_t i = 0; i < size; ++i) blocks.push_back({.engine = i, .block = i * i + 1});
    const auto sequences = chain_of(blocks);
    for (const std::size_t step : {std::size_t{1}, std::size_t{100}, size}) {
      for (std::size_t at = 0; at < size; at += step) {
        const std::optional<EngineHash> parent =
            at == 0 ? std::optional<EngineHash>() : blocks[at - 1].engine;
        const auto part = std::span(blocks).subspan(at, std::min(step, size - at));
        ASSERT_EQ(index.store(slot, parent, part, Tier::Device).done, part.size());
      }
      EXPECT_EQ(index.size().blocks, size);
      for (std::size_t cut = 0; cut <= size; ++cut) {
        const auto match = index.match_one(slot, std::span(sequences).first(cut));
        ASSERT_EQ(match ? match->blocks[0] : 0, cut);
      }
      for (std::size_t left = size; left-- > 0;) {  // from the end, one by one
        index.remove(slot, std::array<EngineHash, 1>{blocks[left].engine}, Tier::Device);
        const auto match = index.match_one(slot, sequences);
        ASSERT_EQ(match ? match->blocks[0] : 0, left);
      }
      EXPECT_EQ(index.size().blocks, 0U);
    }
  }
}

}  // namespace
}  // namespace baton::kvcache
