// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/index.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::kvindex {

// Role. Who was given which prompts of late, and so has them: for engines that do not say, and for
//   the time until one says so.
// Confinement. Any thread. Times never run backwards by more than a caller's own delay.
// Invariants. What was remembered is forgotten `ttl` after its last use, up to a tenth of a second
//   later; when there is too much, what would be forgotten first goes.
class DecisionMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds ttl{120'000};
    std::size_t blocks = 1'000'000;  // pairs of block and holder
  };
  explicit DecisionMemory(Limits limits);

  // The holder has, or will have, these blocks; a use of those that are remembered.
  void remember(Holder holder, std::span<const SequenceHash> prompt, Time now);
  void forget(Holder holder);

  // As Index::match(), with the same length for all tiers.
  void match(std::span<const SequenceHash> prompt, Time now, std::vector<Match>& matches);

  Index::Size size() const;

 private:
  using Tick = std::int64_t;  // tenths of a second
  using Number = std::uint64_t;
  struct Record {
    Number number;
    Slot slot;
    std::unordered_map<SequenceHash, Tick> until;
  };
  struct Due {
    Number record;
    SequenceHash block;
  };

  static Tick tick_of(Time time);
  Record& record_of(Holder holder);
  static std::size_t count_new(const Record& record, std::span<const SequenceHash> prompt);
  void expire(Time now);
  // Forgets what the earliest bucket holds, or puts off what was used since.
  void empty_first_bucket();

  const Limits limits_;
  Index index_;
  mutable std::mutex mutex_;
  std::map<Holder, Record> records_;
  std::unordered_map<Number, Holder> holders_;
  Number next_ = 0;
  // Each block of a record is in one bucket: that of its time, or an earlier one.
  std::map<Tick, std::vector<Due>> buckets_;
  std::size_t remembered_ = 0;
};

}  // namespace baton::kvindex
