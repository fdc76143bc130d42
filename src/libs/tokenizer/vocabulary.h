// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/memory/huge_pages.h"
#include "libs/tokenizer/token.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. The tokens of a model and their ids, both ways: texts in one block of memory, and a flat
//   table in which a short token is found with a single look at memory.
// Confinement. Filled by one thread, then immutable; any thread.
// Invariants. Every text has one id, and every id one text.
class Vocabulary {
 public:
  // Far above any real vocabulary; keeps tables by id small whatever a file says.
  static constexpr TokenId kIdLimit = 1U << 22;

  enum class Added { Yes, DuplicateText, DuplicateId, IdTooLarge };

  // Room for so many tokens is made at once.
  explicit Vocabulary(std::size_t expected);
  Vocabulary() : Vocabulary(0) {}

  Added add(std::string_view text, TokenId id);

  std::optional<TokenId> find(std::string_view text) const {
    const TokenId id = find_or(text, kNone);
    if (id == kNone) return std::nullopt;
    return id;
  }
  static constexpr TokenId kNone = 0xFFFF'FFFF;
  TokenId find_or(std::string_view text, TokenId otherwise) const {
    const Key key = key_of(text);
    for (std::size_t at = key.hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.id == kNone) return otherwise;
      if (slot.head == key.head && slot.tail == key.tail &&
          (text.size() <= kInline || this->text(slot.id) == text)) {
        return slot.id;
      }
    }
  }
  // Brings the place of a text that will be looked for into the cache.
  void prefetch(std::string_view text) const {
    __builtin_prefetch(&slots_[key_of(text).hash & mask_]);
  }

  bool has(TokenId id) const { return id < spans_.size() && spans_[id].length != kHole; }
  // Requires: has(id).
  std::string_view text(TokenId id) const {
    return std::string_view(texts_).substr(spans_[id].offset, spans_[id].length);
  }
  std::size_t size() const { return size_; }
  // One past the highest id.
  TokenId id_end() const { return static_cast<TokenId>(spans_.size()); }
  // In bytes.
  std::size_t longest() const { return longest_; }

 private:
  // Texts up to this long are kept in the table itself.
  static constexpr std::size_t kInline = 11;
  static constexpr std::uint32_t kHole = 0xFFFF'FFFF;

  struct Key {
    std::uint64_t head;  // the first eight bytes, or the hash of a long text
    std::uint32_t tail;  // three more bytes, and the length above them
    std::uint64_t hash;
  };
  struct Slot {
    std::uint64_t head = 0;
    std::uint32_t tail = 0;
    TokenId id = kNone;
  };
  struct Span {
    std::uint32_t offset = 0;
    std::uint32_t length = kHole;
  };

  static std::uint64_t load64(const char* from) {
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static std::uint32_t load32(const char* from) {
    std::uint32_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a ^ 0xA076'1D64'78BD'642FULL) *
                         (b ^ 0xE703'7ED1'A0B4'28DBULL);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  static Key key_of(std::string_view text) {
    const std::size_t length = text.size();
    if (length > kInline) return long_key_of(text);
    const char* p = text.data();
    std::uint64_t head = 0;
    std::uint64_t rest = 0;
    if (length >= 8) {
      head = load64(p);
      if (length > 8) rest = load64(p + length - 8) >> (8 * (16 - length));
    } else if (length >= 4) {
      head = load32(p) | std::uint64_t{load32(p + length - 4)} << (8 * (length - 4));
    } else if (length > 0) {
      const auto byte = [&](std::size_t at) {
        return std::uint64_t{static_cast<unsigned char>(p[at])} << (8 * at);
      };
      head = byte(0) | byte(length / 2) | byte(length - 1);
    }
    const auto tail = static_cast<std::uint32_t>(rest | length << 24);
    return {head, tail, mix(head, tail)};
  }
  using Slots = std::vector<Slot, memory::HugePages<Slot>>;
  static Key long_key_of(std::string_view text);
  void grow(std::size_t slots);

  std::string texts_;
  std::vector<Span> spans_;  // by id
  Slots slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace baton::tokenizer
