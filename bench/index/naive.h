// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/index/index.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace baton::kvcache {

// What one would write first: a table from prefix to the workers that have it, behind a mutex, and
// a walk from the beginning of the prompt. One tier.
class NaiveIndex {
 public:
  explicit NaiveIndex(std::size_t workers) : names_(workers) {}

  void store(std::uint32_t worker, std::optional<EngineHash> parent,
             std::span<const NewBlock> blocks) {
    const std::lock_guard hold(mutex_);
    std::optional<SequenceHash> before;
    if (parent) {
      const auto found = names_[worker].find(*parent);
      if (found == names_[worker].end()) return;
      before = found->second;
    }
    for (const NewBlock& block : blocks) {
      before = before ? next_sequence(*before, block.block) : first_sequence(block.block);
      names_[worker][block.engine] = *before;
      holders_[*before].insert(worker);
    }
  }

  void remove(std::uint32_t worker, std::span<const EngineHash> names) {
    const std::lock_guard hold(mutex_);
    for (const EngineHash name : names) {
      const auto found = names_[worker].find(name);
      if (found == names_[worker].end()) continue;
      const auto holders = holders_.find(found->second);
      holders->second.erase(worker);
      if (holders->second.empty()) holders_.erase(holders);
      names_[worker].erase(found);
    }
  }

  void match(std::span<const SequenceHash> prompt, std::vector<Match>& matches) const {
    matches.clear();
    const std::lock_guard hold(mutex_);
    std::map<std::uint32_t, std::uint32_t> lengths;
    for (std::uint32_t depth = 0; depth < prompt.size(); ++depth) {
      const auto found = holders_.find(prompt[depth]);
      if (found == holders_.end()) break;
      bool any = false;
      for (const std::uint32_t worker : found->second) {
        if (depth > 0 && lengths[worker] != depth) continue;
        lengths[worker] = depth + 1;
        any = true;
      }
      if (!any) break;
    }
    for (const auto& [worker, length] : lengths) {
      if (length == 0) continue;
      matches.push_back({.holder = {.worker = {worker + 1}, .rank = 0}, .blocks = {}});
      matches.back().blocks.fill(length);
    }
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<SequenceHash, std::unordered_set<std::uint32_t>> holders_;
  std::vector<std::unordered_map<EngineHash, SequenceHash>> names_;
};

}  // namespace baton::kvcache
