// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/unicode_normalizer.h"

#include "libs/tokenizer/text/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utf8proc.h>
#include <vector>

namespace baton::tokenizer {
namespace {

using Codes = std::vector<utf8proc_int32_t>;

bool composes(NormalForm form) { return form == NormalForm::C || form == NormalForm::Kc; }
bool is_compatible(NormalForm form) { return form == NormalForm::Kc || form == NormalForm::Kd; }

// Bytes below this one belong to characters that the form leaves alone: all below U+0300 with NFC,
// ASCII with the others.
std::uint8_t first_doubtful_byte(NormalForm form) { return form == NormalForm::C ? 0xCC : 0x80; }

std::size_t skip_below(std::string_view text, std::size_t at, std::uint8_t limit) {
  constexpr std::size_t kStep = 32;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  while (at + kStep <= text.size()) {
    std::uint8_t doubtful = 0;
    for (std::size_t i = 0; i < kStep; ++i) {
      doubtful |= static_cast<std::uint8_t>(bytes[at + i] >= limit);
    }
    if (doubtful != 0) {
      break;
    }
    at += kStep;
  }
  while (at < text.size() && bytes[at] < limit) {
    ++at;
  }
  return at;
}

std::uint8_t combining_class(utf8proc_int32_t code) {
  return static_cast<std::uint8_t>(utf8proc_get_property(code)->combining_class);
}

void decompose(char32_t code, NormalForm form, Codes& codes) {
  constexpr std::size_t kLongest = 32;  // U+FDFA becomes 18
  const int options = UTF8PROC_DECOMPOSE | (is_compatible(form) ? UTF8PROC_COMPAT : 0);
  std::array<utf8proc_int32_t, kLongest> parts{};
  int boundary = 0;
  const auto count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(), parts.size(),
                              static_cast<utf8proc_option_t>(options), &boundary);
  codes.insert(codes.end(), parts.begin(), parts.begin() + std::max<utf8proc_ssize_t>(count, 0));
}

// Sorts marks by their classes; those of one class stay in order.
void sort_marks(std::span<utf8proc_int32_t> marks) {
  constexpr unsigned kCodeBits = 21;
  constexpr unsigned kPlaceBits = 32;
  std::vector<std::uint64_t> keys;
  keys.reserve(marks.size());
  for (const utf8proc_int32_t mark : marks) {
    keys.push_back(std::uint64_t{combining_class(mark)} << (kPlaceBits + kCodeBits) |
                   std::uint64_t{keys.size()} << kCodeBits | static_cast<std::uint32_t>(mark));
  }
  std::ranges::sort(keys);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    marks[i] = static_cast<utf8proc_int32_t>(keys[i] & ((1U << kCodeBits) - 1));
  }
}

// Marks behind a character stand in the order of their classes.
void reorder(std::span<utf8proc_int32_t> codes) {
  for (std::size_t start = 0; start < codes.size(); ++start) {
    std::size_t end = start;
    while (end < codes.size() && combining_class(codes[end]) != 0) {
      ++end;
    }
    if (end - start > 1) {
      sort_marks(codes.subspan(start, end - start));
    }
    start = end;
  }
}

// Appends what the form makes of decomposed text, and clears it.
void finish(Codes& codes, NormalForm form, std::string& out) {
  reorder(codes);
  if (composes(form)) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    const auto count = utf8proc_normalize_utf32(
        codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options);
    codes.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(count, 0)));
  }
  for (const utf8proc_int32_t code : codes) {
    append_utf8(out, static_cast<char32_t>(code));
  }
  codes.clear();
}

}  // namespace

UnicodeNormalizer::UnicodeNormalizer(NormalForm form)
    : form_(form), care_([form] {
        std::vector<CodePointTable::Run> runs;
        for (const auto& [first, last] : unsafe_for(form).ranges()) {
          runs.push_back({first, last, Unsafe});
        }
        for (const auto& [first, last] : not_in_unicode9().ranges()) {
          runs.push_back({first, last, Unknown});
        }
        return CodePointTable(runs);
      }()) {}

std::size_t UnicodeNormalizer::find_unsafe(std::string_view text, std::size_t at) const {
  const std::uint8_t limit = first_doubtful_byte(form_);
  while ((at = skip_below(text, at, limit)) < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    if (care_[code] != Safe) {
      break;
    }
    at += size;
  }
  return at;
}

std::size_t UnicodeNormalizer::find_safe(std::string_view text, std::size_t at) const {
  while (at < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    if (care_[code] == Safe) {
      break;
    }
    at += size;
  }
  return at;
}

std::string_view UnicodeNormalizer::apply(std::string_view text, std::string& buffer) const {
  std::size_t unsafe = find_unsafe(text, 0);
  if (unsafe == text.size()) {
    return text;
  }
  buffer.clear();
  std::size_t done = 0;
  while (unsafe < text.size()) {
    // The character before may take part.
    std::size_t begin = unsafe;
    while (begin > done && is_utf8_continuation(text[--begin])) {
    }
    buffer += text.substr(done, begin - done);
    done = find_safe(text, unsafe);
    normalize(text.substr(begin, done - begin), buffer);
    unsafe = find_unsafe(text, done);
  }
  buffer += text.substr(done);
  return buffer == text ? text : std::string_view(buffer);
}

// A character unknown to Unicode 9 stays as it is and keeps its neighbours apart.
void UnicodeNormalizer::normalize(std::string_view text, std::string& out) const {
  static thread_local Codes codes;
  codes.clear();
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, size] = decode_utf8(text.data() + at);
    if (care_[code] == Unknown) {
      finish(codes, form_, out);
      out += text.substr(at, size);
    } else {
      decompose(code, form_, codes);
    }
    at += size;
  }
  finish(codes, form_, out);
}

}  // namespace baton::tokenizer
