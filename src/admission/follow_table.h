// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

namespace baton::admission {

using Member = std::uint64_t;  // one request's part in it; never given twice

// A prompt's blocks, each named by a hash of everything up to its end.
struct Chain {
  std::vector<std::uint64_t> hashes;
  std::size_t cached = 0;        // so many of them the best of its workers has
  std::size_t block_tokens = 0;  // in each
};

// Role. Who computes which blocks now, and who waits for whom.
// Confinement. None of its own: its owner locks. No I/O.
// Invariants. A member leads or follows, never both. A block has one leader: the first that named it.
class FollowTable {
 public:
  // So many blocks of one leader, and of all, are remembered.
  static constexpr std::size_t kMostOfOne = 1024;
  static constexpr std::size_t kMost = 1U << 20;

  enum class Standing { Leads, Follows, Free };
  enum class End { Succeeded, Failed };
  // What the end of a leader means for those who waited for it.
  struct Moves {
    std::vector<Member> free;      // they go on: it is computed
    std::vector<Member> promoted;  // they lead now
  };

  // 0: nobody follows, and nothing is remembered.
  explicit FollowTable(std::uint64_t tokens) : tokens_(tokens) {}

  // Follows who computes the beginning of this prompt now, if there is one, else leads.
  Member join(Chain chain);
  // 0: it has too little that others could wait for.
  Member lead(const Chain& chain);
  // A leader has ended.
  Moves finish(Member member, End end);
  // A follower waits no longer.
  void leave(Member member);

  Standing standing(Member member) const;
  std::size_t following() const { return following_.size(); }
  std::size_t blocks() const { return leader_of_.size(); }

 private:
  struct Leader {
    std::vector<std::uint64_t> hashes;  // which it was the first to name
    std::list<Member> followers;        // in the order of coming
  };
  struct Follower {
    Chain chain;
    Member leader;
    std::list<Member>::iterator place;
  };

  std::optional<std::size_t> decisive_block(const Chain& chain) const;
  std::optional<Member> leader_for(const Chain& chain) const;
  void announce(Member member, const Chain& chain);
  void follow(Member member, Member leader, Chain chain);

  std::uint64_t tokens_;
  Member last_ = 0;
  std::unordered_map<std::uint64_t, Member> leader_of_;  // by block
  std::unordered_map<Member, Leader> leaders_;
  std::unordered_map<Member, Follower> following_;
};

}  // namespace baton::admission
