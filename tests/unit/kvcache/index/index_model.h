// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace baton::kvcache {

// What the index does, without any of its means: lists of what each holder was said to have, gone
// through from end to end for each question.
class IndexModel {
 public:
  // From so many on, the most blocks are never reached in a test.
  static constexpr std::size_t kUnbounded = 1'000'000;

  explicit IndexModel(std::size_t most = kUnbounded, std::size_t most_names = kUnbounded)
      : most_(most), most_names_(most_names) {}

  void join(Slot slot, Holder holder) { slots_[slot].holder = holder; }
  void leave(Slot slot) { slots_.erase(slot); }
  void clear(Slot slot) { slots_.at(slot).blocks.clear(); }

  Applied store(Slot slot, std::optional<EngineHash> parent, std::span<const NewBlock> blocks,
                Tier tier) {
    auto& held = slots_.at(slot).blocks;
    Applied applied;
    std::optional<SequenceHash> before;
    if (parent) {
      const auto found = held.find(*parent);
      if (found == held.end()) {
        applied.unknown_parent = static_cast<std::uint32_t>(blocks.size());
        return applied;
      }
      before = found->second.sequence;
    }
    const unsigned bit = 1U << static_cast<unsigned>(tier);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const SequenceHash sequence =
          before ? next_sequence(*before, blocks[i].block) : first_sequence(blocks[i].block);
      if (most_ < kUnbounded && !known().contains(sequence) && known().size() >= most_) {
        applied.no_room = static_cast<std::uint32_t>(blocks.size() - i);
        break;
      }
      if (most_names_ < kUnbounded && !held.contains(blocks[i].engine) && names() >= most_names_) {
        applied.no_room = static_cast<std::uint32_t>(blocks.size() - i);
        break;
      }
      if (before) parents_[sequence] = *before;
      const auto found = held.find(blocks[i].engine);
      if (found != held.end() && found->second.sequence == sequence) {
        ++((found->second.tiers & bit) != 0 ? applied.known : applied.done);
        found->second.tiers |= bit;
      } else {
        held[blocks[i].engine] = {.sequence = sequence, .tiers = bit};
        ++applied.done;
      }
      before = sequence;
    }
    return applied;
  }

  Applied copy(Slot slot, std::span<const EngineHash> blocks, Tier tier) {
    auto& held = slots_.at(slot).blocks;
    const unsigned bit = 1U << static_cast<unsigned>(tier);
    Applied applied;
    for (const EngineHash name : blocks) {
      const auto found = held.find(name);
      if (found == held.end()) {
        ++applied.unknown_parent;
        continue;
      }
      ++((found->second.tiers & bit) != 0 ? applied.known : applied.done);
      found->second.tiers |= bit;
    }
    return applied;
  }

  Applied remove(Slot slot, std::span<const EngineHash> blocks, Tier tier) {
    auto& held = slots_.at(slot).blocks;
    const unsigned bit = 1U << static_cast<unsigned>(tier);
    Applied applied;
    for (const EngineHash name : blocks) {
      const auto found = held.find(name);
      if (found == held.end() || (found->second.tiers & bit) == 0) {
        ++applied.known;
        continue;
      }
      ++applied.done;
      found->second.tiers &= ~bit;
      if (found->second.tiers == 0) held.erase(found);
    }
    return applied;
  }

  // Ordered by holder.
  std::vector<Match> match(std::span<const SequenceHash> prompt) const {
    std::vector<Match> matches;
    for (const auto& [slot, state] : slots_) {
      Match match{.holder = state.holder};
      const auto tiers = tiers_of(state);
      const auto has = [&](SequenceHash sequence, unsigned near) {
        const auto found = tiers.find(sequence);
        return found != tiers.end() && (found->second & near) != 0;
      };
      for (std::size_t tier = 0; tier < kTiers; ++tier) {
        const unsigned near = (2U << tier) - 1;
        while (match.blocks[tier] < prompt.size() && has(prompt[match.blocks[tier]], near)) {
          ++match.blocks[tier];
        }
      }
      if (match.blocks.back() > 0) matches.push_back(match);
    }
    std::ranges::sort(matches, {}, &Match::holder);
    return matches;
  }

  std::array<std::size_t, kTiers> holding(Slot slot) const {
    std::array<std::size_t, kTiers> count{};
    for (const auto& [sequence, mask] : tiers_of(slots_.at(slot))) {
      for (std::size_t tier = 0; tier < kTiers; ++tier) count[tier] += mask >> tier & 1;
    }
    return count;
  }

  std::size_t blocks() const { return held().size(); }
  std::size_t memberships() const {
    std::size_t count = 0;
    for (const auto& [slot, state] : slots_) {
      std::set<SequenceHash> sequences;
      for (const auto& [name, block] : state.blocks) sequences.insert(block.sequence);
      count += sequences.size();
    }
    return count;
  }

  struct Block {
    SequenceHash sequence = 0;
    unsigned tiers = 0;
  };
  const std::map<EngineHash, Block>& list(Slot slot) const { return slots_.at(slot).blocks; }
  std::optional<SequenceHash> parent_of(SequenceHash sequence) const {
    const auto found = parents_.find(sequence);
    return found == parents_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  struct State {
    Holder holder;
    std::map<EngineHash, Block> blocks;
  };

  static std::map<SequenceHash, unsigned> tiers_of(const State& state) {
    std::map<SequenceHash, unsigned> tiers;
    for (const auto& [name, block] : state.blocks) tiers[block.sequence] |= block.tiers;
    return tiers;
  }

  std::size_t names() const {
    std::size_t count = 0;
    for (const auto& [slot, state] : slots_) count += state.blocks.size();
    return count;
  }

  std::set<SequenceHash> held() const {
    std::set<SequenceHash> sequences;
    for (const auto& [slot, state] : slots_) {
      for (const auto& [name, block] : state.blocks) sequences.insert(block.sequence);
    }
    return sequences;
  }
  // Held, or leading to one that is.
  std::set<SequenceHash> known() const {
    std::set<SequenceHash> sequences;
    for (SequenceHash sequence : held()) {
      while (sequences.insert(sequence).second) {
        const auto before = parents_.find(sequence);
        if (before == parents_.end()) break;
        sequence = before->second;
      }
    }
    return sequences;
  }

  std::size_t most_;
  std::size_t most_names_;
  std::map<Slot, State> slots_;
  std::map<SequenceHash, SequenceHash> parents_;  // of every block ever stored
};

}  // namespace baton::kvcache
