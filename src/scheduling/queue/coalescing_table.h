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
  std::size_t cached = 0;        // of those, in the best of its workers' caches
  std::size_t block_tokens = 0;  // in each
};

// The requests that wait for one leader, or, if it has failed, for the one of them that leads then.
struct FollowerGroup {
  explicit FollowerGroup(Leader first) : first(first) {}
  const Leader first;                  // unique to this group
  Leader led_by = first;               // 0: it has failed; the table's
  std::atomic<bool> succeeded{false};  // there is nothing to wait for any more
};

// Role. Tracks which request computes which blocks now, and whether others wait for it.
// Confinement. None of its own: its owner locks. No I/O.
// Invariants. A block has one leader: the first that named it. Only the hashes that a leader has
//   named are kept of its prompt.
class CoalescingTable {
 public:
  // Limits on remembered blocks, of one leader and in total.
  static constexpr std::size_t kMostOfOne = 1024;
  static constexpr std::size_t kMost = 1U << 20;

  // 0: no coalescing, and nothing is remembered.
  explicit CoalescingTable(std::uint64_t tokens) : tokens_(tokens) {}

  // The leader that computes the beginning of this prompt now.
  std::optional<Leader> find(const Chain& chain) const;
  // Makes the prompt a leader; 0: too little of it for others to wait for. Or returns the existing
  // leader. `group`: the group it belonged to. That group follows it, if the group's leader has
  // failed and has no successor yet.
  std::expected<Leader, Leader> lead(const Chain& chain, std::shared_ptr<FollowerGroup> group = {});
  enum class End { Succeeded, Failed };
  // Adds a waiting request to the leader's group. Requires: it leads.
  std::shared_ptr<FollowerGroup> follow(Leader leader);
  // True if requests wait for the leader.
  bool followed(Leader leader) const;
  void finish(Leader leader, End end);

  std::size_t blocks() const { return leader_of_.size(); }

 private:
  struct Named {
    std::vector<std::uint64_t> hashes;     // which it was the first to name
    std::shared_ptr<FollowerGroup> group;  // null: no request waits for it
  };

  std::optional<std::size_t> decisive_block(const Chain& chain) const;

  std::uint64_t tokens_;
  Leader last_ = 0;
  std::unordered_map<std::uint64_t, Leader> leader_of_;  // by block
  std::unordered_map<Leader, Named> leaders_;
};

}  // namespace baton::scheduling
