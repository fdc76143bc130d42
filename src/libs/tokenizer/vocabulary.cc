// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/vocabulary.h"

#define XXH_INLINE_ALL
#include <algorithm>
#include <bit>
#include <utility>
#include <xxhash.h>

namespace baton::tokenizer {
namespace {

constexpr std::size_t kFewestTextSlots = 16;

}  // namespace

Vocabulary::Vocabulary(std::size_t expected) {
  expected = std::min<std::size_t>(expected, kIdLimit);
  spans_.reserve(expected);
  texts_.reserve(expected * 8);
  grow(std::bit_ceil(std::max(kFewestTextSlots, expected * 2)));
}

Vocabulary::Key Vocabulary::long_key_of(std::string_view text) {
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  return {hash, 0xFF00'0000U | static_cast<std::uint32_t>(hash >> 40), hash};
}

void Vocabulary::grow(std::size_t slots) {
  const Slots old = std::exchange(slots_, Slots(slots));
  mask_ = slots - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNone) continue;
    std::size_t at = key_of(text(slot.id)).hash & mask_;
    while (slots_[at].id != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

Vocabulary::Added Vocabulary::add(std::string_view text, TokenId id) {
  if (id >= kIdLimit) return Added::IdTooLarge;
  if (has(id)) return Added::DuplicateId;
  if ((size_ + 1) * 2 > slots_.size()) grow(slots_.size() * 2);

  const Key key = key_of(text);
  std::size_t at = key.hash & mask_;
  for (; slots_[at].id != kNone; at = (at + 1) & mask_) {
    const Slot& slot = slots_[at];
    if (slot.head == key.head && slot.tail == key.tail &&
        (text.size() <= kInline || this->text(slot.id) == text)) {
      return Added::DuplicateText;
    }
  }
  slots_[at] = {.head = key.head, .tail = key.tail, .id = id};
  if (id >= spans_.size()) spans_.resize(id + 1);
  spans_[id] = {.offset = static_cast<std::uint32_t>(texts_.size()),
                .length = static_cast<std::uint32_t>(text.size())};
  texts_.append(text);
  ++size_;
  longest_ = std::max(longest_, text.size());
  return Added::Yes;
}

}  // namespace baton::tokenizer
