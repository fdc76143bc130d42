// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvindex/member_sets.h"

#include <cstring>

namespace baton::kvindex {
namespace {

// How many members a set of each class has room for: a quarter more than the one before.
constexpr auto kCapacities = [] {
  std::array<std::uint32_t, 30> capacities{};
  std::uint32_t capacity = 2;
  for (std::uint32_t& each : capacities) {
    each = std::min(capacity, 1022U);  // the last: four to a page
    capacity = std::max(capacity + 1, capacity + capacity / 4);
  }
  capacities.back() = 1022;
  return capacities;
}();
static_assert(kCapacities[28] < 1022);

}  // namespace

MemberSets::MemberSets(PageArena& arena) {
  for (const std::uint32_t capacity : kCapacities) {
    slabs_.push_back(std::make_unique<Slab>(arena, kHeaderBytes + capacity * sizeof(Member)));
  }
}

MemberSets::~MemberSets() {
  for (const Large& large : large_) {
    if (large.set != nullptr) {
      free_array(reinterpret_cast<std::byte*>(large.set),
                 kHeaderBytes + large.capacity * sizeof(Member));
    }
  }
}

unsigned MemberSets::class_for(std::uint32_t size) {
  const auto* found = std::ranges::lower_bound(kCapacities, size);
  return found == kCapacities.end() ? kLargeClass
                                    : static_cast<unsigned>(found - kCapacities.begin()) + 1;
}

std::uint32_t MemberSets::capacity_of(SetRef ref) const {
  return class_of(ref) == kLargeClass ? large_[number_of(ref)].capacity
                                      : kCapacities[class_of(ref) - 1];
}

MemberSets::View MemberSets::view(const SetRef& ref) const {
  if ((ref & 1) != 0) return {.members = std::span(&ref, 1), .score = weight_of(ref)};
  if (ref == 0) return {};
  const Set* set = set_of(ref);
  return {.members = std::span(set->members, set->size), .score = set->score};
}

Member* MemberSets::place_in(Set& set, std::uint32_t slot) {
  return std::lower_bound(set.members, set.members + set.size, slot << 9);
}

Member MemberSets::find(const SetRef& ref, std::uint32_t slot) const {
  if ((ref & 1) != 0) return slot_of(ref) == slot ? ref : 0;
  if (ref == 0) return 0;
  Set& set = *set_of(ref);
  const Member* place = place_in(set, slot);
  return place != set.members + set.size && slot_of(*place) == slot ? *place : 0;
}

bool MemberSets::add(SetRef& ref, Member member) {
  if (ref == 0) {
    ref = member;
    return true;
  }
  if ((ref & 1) != 0) {
    const SetRef made = take(2);
    if (made == 0) return false;
    Set& set = *set_of(made);
    set.size = 1;
    set.score = weight_of(ref);
    set.members[0] = ref;
    ref = made;
  } else if (set_of(ref)->size == capacity_of(ref) && !move(ref, capacity_of(ref) + 1)) {
    return false;
  }
  Set& set = *set_of(ref);
  Member* place = place_in(set, slot_of(member));
  std::copy_backward(place, set.members + set.size, set.members + set.size + 1);
  *place = member;
  ++set.size;
  set.score += weight_of(member);
  return true;
}

void MemberSets::replace(SetRef& ref, Member member) {
  if ((ref & 1) != 0) {
    ref = member;
    return;
  }
  Set& set = *set_of(ref);
  Member* place = place_in(set, slot_of(member));
  set.score += weight_of(member) - weight_of(*place);
  *place = member;
}

void MemberSets::remove(SetRef& ref, std::uint32_t slot) {
  if ((ref & 1) != 0) {
    ref = 0;
    return;
  }
  Set& set = *set_of(ref);
  Member* place = place_in(set, slot);
  set.score -= weight_of(*place);
  std::copy(place + 1, set.members + set.size, place);
  if (--set.size == 1) {
    const Member last = set.members[0];
    give(ref);
    ref = last;
    return;
  }
  // Two classes down at once, so that a set at a border does not go to and fro. It stays where it
  // is when there is no room elsewhere.
  if (set.size + set.size / 2 + 1 < capacity_of(ref)) move(ref, set.size);
}

SetRef MemberSets::take(std::uint32_t size) {
  const unsigned size_class = class_for(size);
  if (size_class == kLargeClass) return take_large(size);
  const std::uint32_t number = slabs_[size_class - 1]->take();
  return number == Slab::kNothing ? 0 : size_class << 27 | number << 1;
}

SetRef MemberSets::take_large(std::uint32_t size) {
  std::uint32_t number = 0;
  if (free_large_.empty()) {
    number = static_cast<std::uint32_t>(large_.size());
    if (number == Slab::kNothing) return 0;
    large_.emplace_back();
  } else {
    number = free_large_.back();
    free_large_.pop_back();
  }
  const std::uint32_t capacity = size + size / 4;
  const std::size_t bytes = kHeaderBytes + capacity * sizeof(Member);
  large_[number] = {.set = reinterpret_cast<Set*>(allocate_array(bytes)), .capacity = capacity};
  large_bytes_ += bytes;
  return kLargeClass << 27 | number << 1;
}

void MemberSets::give(SetRef ref) {
  if (class_of(ref) != kLargeClass) {
    slabs_[class_of(ref) - 1]->give(number_of(ref));
    return;
  }
  Large& large = large_[number_of(ref)];
  const std::size_t bytes = kHeaderBytes + large.capacity * sizeof(Member);
  free_array(reinterpret_cast<std::byte*>(large.set), bytes);
  large_bytes_ -= bytes;
  large = {};
  free_large_.push_back(number_of(ref));
}

bool MemberSets::move(SetRef& ref, std::uint32_t size) {
  const SetRef to = take(size);
  if (to == 0) return false;
  const Set& set = *set_of(ref);
  std::memcpy(set_of(to), &set, kHeaderBytes + set.size * sizeof(Member));
  give(ref);
  ref = to;
  return true;
}

}  // namespace baton::kvindex
