// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/decision_memory.h"

#include <algorithm>

namespace baton::kvindex {
namespace {

constexpr std::chrono::milliseconds kTick{100};

}  // namespace

DecisionMemory::DecisionMemory(Limits limits)
    : limits_(limits), index_({.blocks = limits.blocks}) {}

// Rounded up.
DecisionMemory::Tick DecisionMemory::tick_of(Time time) {
  const auto since = std::chrono::ceil<std::chrono::milliseconds>(time.time_since_epoch());
  return (since + kTick - std::chrono::milliseconds(1)) / kTick;
}

DecisionMemory::Record& DecisionMemory::record_of(Holder holder) {
  const auto found = records_.find(holder);
  if (found != records_.end()) return found->second;
  Record record{.number = next_++, .slot = index_.join(holder), .until = {}};
  holders_[record.number] = holder;
  return records_.emplace(holder, std::move(record)).first->second;
}

std::size_t DecisionMemory::count_new(const Record& record, std::span<const SequenceHash> prompt) {
  return static_cast<std::size_t>(std::ranges::count_if(
      prompt, [&](SequenceHash block) { return !record.until.contains(block); }));
}

void DecisionMemory::remember(Holder holder, std::span<const SequenceHash> prompt, Time now) {
  const std::lock_guard hold(mutex_);
  expire(now);
  prompt = prompt.first(std::min(prompt.size(), limits_.blocks));
  if (prompt.empty()) return;
  const Tick until = tick_of(now + limits_.ttl);
  auto& remembered = record_of(holder).until;
  for (const SequenceHash block : prompt) {
    const auto found = remembered.find(block);
    if (found != remembered.end()) found->second = std::max(found->second, until);
  }
  // Each time anew: what goes may be of this prompt, and end the record.
  while (remembered_ + count_new(record_of(holder), prompt) > limits_.blocks) {
    empty_first_bucket();
  }
  Record& record = record_of(holder);
  std::vector<Index::Restored> blocks;
  for (const SequenceHash block : prompt) {
    blocks.push_back({.engine = block, .sequence = block, .tiers = 1});
    const auto [found, fresh] = record.until.try_emplace(block, until);
    if (!fresh) continue;
    ++remembered_;
    buckets_[until].push_back({.record = record.number, .block = block});
  }
  index_.restore(record.slot, std::nullopt, blocks);
}

void DecisionMemory::empty_first_bucket() {
  auto bucket = buckets_.extract(buckets_.begin());
  std::unordered_map<Number, std::vector<EngineHash>> gone;
  for (const Due& due : bucket.mapped()) {
    const auto holder = holders_.find(due.record);
    if (holder == holders_.end()) continue;  // forgotten as a whole
    Record& record = records_.at(holder->second);
    const auto found = record.until.find(due.block);
    if (found->second > bucket.key()) {
      buckets_[found->second].push_back(due);
      continue;
    }
    record.until.erase(found);
    --remembered_;
    gone[due.record].push_back(due.block);
  }
  for (const auto& [number, blocks] : gone) {
    const Holder holder = holders_.at(number);
    const Record& record = records_.at(holder);
    index_.remove(record.slot, blocks, Tier::Device);
    if (!record.until.empty()) continue;
    index_.leave(record.slot);
    records_.erase(holder);
    holders_.erase(number);
  }
}

void DecisionMemory::expire(Time now) {
  while (!buckets_.empty() && Time(buckets_.begin()->first * kTick) <= now) {
    empty_first_bucket();
  }
}

void DecisionMemory::forget(Holder holder) {
  const std::lock_guard hold(mutex_);
  const auto found = records_.find(holder);
  if (found == records_.end()) return;
  remembered_ -= found->second.until.size();
  index_.leave(found->second.slot);
  holders_.erase(found->second.number);
  records_.erase(found);
}

void DecisionMemory::match(std::span<const SequenceHash> prompt, Time now,
                           std::vector<Match>& matches) {
  {
    const std::lock_guard hold(mutex_);
    expire(now);
  }
  index_.match(prompt, matches);
}

Index::Size DecisionMemory::size() const {
  const std::lock_guard hold(mutex_);
  Index::Size size = index_.size();
  constexpr std::size_t kEach = 48 + sizeof(Due);  // a map's node with its part of the table
  size.bytes += remembered_ * kEach + records_.size() * 2 * sizeof(Record);
  return size;
}

}  // namespace baton::kvindex
