// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvindex/slab.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace baton::kvindex {

// One holder of a block, in four bytes: its slot (23 bits), the tiers it has the block in (4), how
// far it must reach for what comes before the block (3), whether it may have blocks that follow
// (1). The last bit is always set. Ordered by slot.
using Member = std::uint32_t;

inline constexpr std::uint32_t kMostSlots = 1U << 23;
// How far a holder must reach is the farthest tier that it takes to have all of a prefix; this is
// for one that has not all of it.
inline constexpr std::uint32_t kNoReach = 4;
inline constexpr Member kMayHaveChildren = 2;

constexpr Member make_member(std::uint32_t slot, std::uint32_t tiers, std::uint32_t before) {
  return slot << 9 | tiers << 5 | before << 2 | 1;
}
constexpr std::uint32_t slot_of(Member member) { return member >> 9; }
constexpr std::uint32_t tiers_of(Member member) { return member >> 5 & 15; }
constexpr std::uint32_t reach_before(Member member) { return member >> 2 & 7; }
constexpr std::uint32_t reach_of(Member member) {
  return std::max(reach_before(member),
                  static_cast<std::uint32_t>(std::countr_zero(tiers_of(member))));
}
constexpr Member with_tiers(Member member, std::uint32_t tiers) {
  return (member & ~(15U << 5)) | tiers << 5;
}
constexpr Member with_reach_before(Member member, std::uint32_t before) {
  return (member & ~(7U << 2)) | before << 2;
}
// What a member adds to the score of its block. Along a prompt no holder's weight ever rises, so
// two blocks of one score have the same holders with the same reaches.
constexpr std::uint32_t weight_of(Member member) { return kNoReach - reach_of(member); }

// Where a block's members are: nowhere (0), here (a Member), or in a set.
using SetRef = std::uint32_t;

// Role. The members of a shard's blocks: one in the block itself, more in sorted arrays.
// Confinement. One thread at a time.
class MemberSets {
 public:
  explicit MemberSets(PageArena& arena);
  ~MemberSets();
  MemberSets(const MemberSets&) = delete;
  MemberSets& operator=(const MemberSets&) = delete;

  struct View {
    std::span<const Member> members;
    std::uint32_t score = 0;
  };
  View view(const SetRef& ref) const;
  std::uint32_t score(SetRef ref) const {
    if ((ref & 1) != 0) return weight_of(ref);
    return ref == 0 ? 0 : set_of(ref)->score;
  }
  void prefetch(SetRef ref) const {
    if ((ref & 1) == 0 && ref != 0) __builtin_prefetch(set_of(ref));
  }

  // 0 where the slot is none of them.
  Member find(const SetRef& ref, std::uint32_t slot) const;
  // Requires: the slot is none of them. False: no numbers left.
  bool add(SetRef& ref, Member member);
  // Requires: the slot is one of them.
  void replace(SetRef& ref, Member member);
  void remove(SetRef& ref, std::uint32_t slot);

  std::size_t bytes() const { return large_bytes_; }

 private:
  struct Set {
    std::uint32_t size;
    std::uint32_t score;
    Member members[1];  // as many as the class has room for
  };
  static constexpr std::size_t kHeaderBytes = 8;
  static constexpr unsigned kClasses = 30;
  static constexpr unsigned kLargeClass = 31;
  struct Large {
    Set* set = nullptr;
    std::uint32_t capacity = 0;
  };

  static unsigned class_for(std::uint32_t size);
  static unsigned class_of(SetRef ref) { return ref >> 27; }
  static std::uint32_t number_of(SetRef ref) { return ref >> 1 & Slab::kNothing; }
  Set* set_of(SetRef ref) const {
    const unsigned size_class = class_of(ref);
    if (size_class == kLargeClass) return large_[number_of(ref)].set;
    return reinterpret_cast<Set*>(slabs_[size_class - 1]->at(number_of(ref)));
  }
  std::uint32_t capacity_of(SetRef ref) const;
  static Member* place_in(Set& set, std::uint32_t slot);

  SetRef take(std::uint32_t size);
  SetRef take_large(std::uint32_t size);
  void give(SetRef ref);
  bool move(SetRef& ref, std::uint32_t size);

  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<Large> large_;
  std::vector<std::uint32_t> free_large_;
  std::size_t large_bytes_ = 0;
};

}  // namespace baton::kvindex
