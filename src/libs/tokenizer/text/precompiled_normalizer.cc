// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/precompiled_normalizer.h"

#include "libs/base64/base64.h"
#include "libs/tokenizer/text/grapheme.h"
#include "libs/tokenizer/text/utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace baton::tokenizer {
namespace {

// Longer graphemes are looked up character by character.
constexpr std::size_t kLongestGrapheme = 5;

// One unit of Darts' double array.
struct Unit {
  std::uint32_t bits;

  bool has_leaf() const { return (bits >> 8 & 1U) != 0; }
  std::uint32_t value() const { return bits & 0x7FFFFFFFU; }
  std::uint32_t label() const { return bits & 0x800000FFU; }
  std::uint32_t offset() const { return bits >> 10 << ((bits & 0x200U) >> 6); }
};

bool is_ascii(char byte) { return static_cast<std::uint8_t>(byte) < 0x80; }

}  // namespace

Result<std::unique_ptr<const PrecompiledNormalizer>> PrecompiledNormalizer::from_base64(
    std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  const auto broken = [] {
    return fail(ErrorCode::InvalidFile,
                "The `precompiled_charsmap` of the tokenizer's normalizer is broken.");
  };
  const auto bytes = base64::decode(text);
  std::uint32_t trie_size = 0;
  if (!bytes || bytes->size() < sizeof trie_size) {
    return broken();
  }
  std::memcpy(&trie_size, bytes->data(), sizeof trie_size);
  if (trie_size > bytes->size() - sizeof trie_size || trie_size < sizeof(std::uint32_t)) {
    return broken();
  }
  std::vector<std::uint32_t> trie(trie_size / sizeof(std::uint32_t));
  const std::size_t used = trie.size() * sizeof(std::uint32_t);
  std::memcpy(trie.data(), bytes->data() + sizeof trie_size, used);
  std::string replacements = bytes->substr(sizeof trie_size + used);
  if (!simdjson::validate_utf8(replacements)) {
    return broken();
  }
  return std::unique_ptr<const PrecompiledNormalizer>(
      new PrecompiledNormalizer(std::move(trie), std::move(replacements)));
}

PrecompiledNormalizer::PrecompiledNormalizer(std::vector<std::uint32_t> trie,
                                             std::string replacements)
    : trie_(std::move(trie)), replacements_(std::move(replacements)) {
  for (std::size_t code = 0; code < ascii_changes_.size(); ++code) {
    const auto byte = static_cast<char>(code);
    ascii_changes_[code] = replacement({&byte, 1}).has_value();
  }
}

std::optional<std::string_view> PrecompiledNormalizer::replacement(std::string_view part) const {
  std::size_t place = Unit{trie_[0]}.offset();
  for (const char byte : part) {
    const auto label = static_cast<std::uint8_t>(byte);
    place ^= label;
    if (label == 0 || place >= trie_.size() || Unit{trie_[place]}.label() != label) {
      break;
    }
    const Unit unit{trie_[place]};
    place ^= unit.offset();
    if (unit.has_leaf() && place < trie_.size()) {
      const std::size_t start = Unit{trie_[place]}.value();
      if (start >= replacements_.size() || is_utf8_continuation(replacements_[start])) {
        break;
      }
      const std::size_t end = std::min(replacements_.find('\0', start), replacements_.size());
      return std::string_view(replacements_).substr(start, end - start);
    }
  }
  return std::nullopt;
}

std::string_view PrecompiledNormalizer::apply(std::string_view text, std::string& buffer) const {
  bool changed = false;
  std::size_t kept = 0;      // up to here, the text is in the buffer
  std::size_t grapheme = 0;  // the end of the one that is taken apart
  for (std::size_t at = 0; at < text.size();) {
    const bool alone = at + 1 == text.size() || is_ascii(text[at + 1]);
    if (is_ascii(text[at]) && text[at] != '\r' && alone &&
        !ascii_changes_[static_cast<std::uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    std::size_t end = at + utf8_size(text[at]);
    if (at >= grapheme) {
      grapheme = grapheme_end(text, at);
      if (grapheme - at <= kLongestGrapheme && replacement(text.substr(at, grapheme - at))) {
        end = grapheme;
      }
    }
    if (const auto other = replacement(text.substr(at, end - at))) {
      if (!changed) {
        buffer.clear();
        changed = true;
      }
      buffer.append(text.substr(kept, at - kept)).append(*other);
      kept = end;
    }
    at = end;
  }
  if (!changed) {
    return text;
  }
  buffer += text.substr(kept);
  return buffer;
}

}  // namespace baton::tokenizer
