// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/normalizers.h"

#include "libs/tokenizer/text/byte_alphabet.h"
#include "libs/tokenizer/text/utf8.h"

#include <algorithm>
#include <vector>

namespace baton::tokenizer {
namespace {

constexpr char32_t kCapitalIWithDot = 0x130;

std::vector<CodePointTable::Run> runs_of(const std::vector<CharActionNormalizer::Rule>& rules) {
  std::vector<CodePointTable::Run> runs;
  for (const auto& [set, action] : rules) {
    for (const auto& [first, last] : set.ranges()) {
      runs.push_back({first, last, action});
    }
  }
  return runs;
}

// How much at the start of the text has 0 in the table.
std::size_t untouched(std::string_view text, const CodePointTable& table) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    if (table[code] != 0) {
      break;
    }
    at += size;
  }
  return at;
}

}  // namespace

CharActionNormalizer::CharActionNormalizer(const std::vector<Rule>& rules)
    : actions_(runs_of(rules)) {}

std::string_view CharActionNormalizer::apply(std::string_view text, std::string& buffer) const {
  std::size_t at = untouched(text, actions_);
  if (at == text.size()) {
    return text;
  }
  buffer.assign(text.substr(0, at));
  while (at < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    const std::string_view character = text.substr(at, size);
    at += size;
    switch (actions_[code]) {
      case Keep:
        buffer += character;
        break;
      case Remove:
        break;
      case MakeSpace:
        buffer += ' ';
        break;
      case PutSpacesAround:
        buffer.append(" ").append(character).append(" ");
        break;
      default:
        std::unreachable();
    }
  }
  return buffer;
}

LowercaseNormalizer::LowercaseNormalizer()
    : changes_([] {
        CharSet set = CaseMaps::instance().with_lower();
        set.add(kCapitalIWithDot, kCapitalIWithDot);
        return CodePointTable(set);
      }()) {}

std::string_view LowercaseNormalizer::apply(std::string_view text, std::string& buffer) const {
  std::size_t at = untouched(text, changes_);
  if (at == text.size()) {
    return text;
  }
  const CaseMaps& maps = CaseMaps::instance();
  buffer.assign(text.substr(0, at));
  while (at < text.size()) {
    const auto [code, size] = decode_utf8(text.data() + at);
    if (code >= 'A' && code <= 'Z') {
      buffer += static_cast<char>(code - U'A' + U'a');
    } else if (code == kCapitalIWithDot) {
      buffer += "i\u0307";
    } else if (changes_[code] != 0) {
      append_utf8(buffer, maps.lower(code));
    } else {
      buffer += text.substr(at, size);
    }
    at += size;
  }
  return buffer;
}

std::string_view StripNormalizer::apply(std::string_view text, std::string& /*buffer*/) const {
  const auto is_space = [](const char* at) { return white_space().contains(decode_utf8(at).code); };
  while (left_ && !text.empty() && is_space(text.data())) {
    text.remove_prefix(utf8_size(text[0]));
  }
  while (right_ && !text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && is_utf8_continuation(text[last])) {
      --last;
    }
    if (!is_space(text.data() + last)) {
      break;
    }
    text.remove_suffix(text.size() - last);
  }
  return text;
}

std::string_view ReplaceNormalizer::apply(std::string_view text, std::string& buffer) const {
  static thread_local std::vector<Match> matches;
  matches.clear();
  matcher_->find_all(text, matches);
  if (matches.empty()) {
    return text;
  }
  buffer.clear();
  buffer.reserve(text.size() + matches.size() * content_.size());
  std::size_t at = 0;
  for (const Match& match : matches) {
    buffer.append(text.substr(at, match.begin - at)).append(content_);
    at = match.end;
  }
  buffer += text.substr(at);
  return buffer;
}

std::string_view PrependNormalizer::apply(std::string_view text, std::string& buffer) const {
  if (text.empty() || prefix_.empty()) {
    return text;
  }
  buffer.assign(prefix_).append(text);
  return buffer;
}

std::string_view ByteLevelNormalizer::apply(std::string_view text, std::string& buffer) const {
  const auto is_itself = [](char c) { return c >= '!' && c <= '~'; };
  if (std::ranges::all_of(text, is_itself)) {
    return text;
  }
  buffer.clear();
  ByteAlphabet::instance().write(text, buffer);
  return buffer;
}

}  // namespace baton::tokenizer
