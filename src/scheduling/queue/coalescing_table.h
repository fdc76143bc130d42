// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace baton::scheduling {

using Leader = std::uint64_t;  // one request that computes a prompt; never given twice

// A prompt's blocks, each named by a hash of everything up to its end.
struct Chain {
  std::span<const std::uint64_t> hashes;
  std::size_t cached = 0;        // so many of them the best of its workers has
  std::size_t block_tokens = 0;  // in each
};

// Those who follow one leader, or, where it has failed, the one of them that leads then.
struct FollowerGroup {
  explicit FollowerGroup(Leader first) : first(first) {}
  const Leader first;                  // which no other pack has
  Leader led_by = first;               // 0: it has failed; the table's
  std::atomic<bool> succeeded{false};  // there is nothing to wait for any more
};

// Role. Who computes which blocks now, and whether anybody waits for it.
// Confinement. None of its own: its owner locks. No I/O.
// Invariants. A block has one leader: the first that named it. Nothing of a prompt is kept but the
//   hashes that its leader has named.
class CoalescingTable {
 public:
  // So many blocks of one leader, and of all, are remembered.
  static constexpr std::size_t kMostOfOne = 1024;
  static constexpr std::size_t kMost = 1U << 20;

  // 0: nobody follows, and nothing is remembered.
  explicit CoalescingTable(std::uint64_t tokens) : tokens_(tokens) {}

  // Who computes the beginning of this prompt now.
  std::optional<Leader> find(const Chain& chain) const;
  // It computes it from now on; 0: it has too little that others could wait for. Or who does already.
  // `pack`: one of whom it was. They follow it, if their leader has failed and nobody leads them yet.
  std::expected<Leader, Leader> lead(const Chain& chain, std::shared_ptr<FollowerGroup> pack = {});
  enum class End { Succeeded, Failed };
  // Somebody waits for it. Requires: it leads.
  std::shared_ptr<FollowerGroup> follow(Leader leader);
  // Anybody does.
  bool followed(Leader leader) const;
  void finish(Leader leader, End end);

  std::size_t blocks() const { return leader_of_.size(); }

 private:
  struct Named {
    std::vector<std::uint64_t> hashes;    // which it was the first to name
    std::shared_ptr<FollowerGroup> pack;  // null: nobody waits for it
  };

  std::optional<std::size_t> decisive_block(const Chain& chain) const;

  std::uint64_t tokens_;
  Leader last_ = 0;
  std::unordered_map<std::uint64_t, Leader> leader_of_;  // by block
  std::unordered_map<Leader, Named> leaders_;
};

}  // namespace baton::scheduling
