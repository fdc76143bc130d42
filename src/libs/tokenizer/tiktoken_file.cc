// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tiktoken_file.h"

#include "libs/base64/base64.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>

namespace baton::tokenizer {
namespace {

// Every way to make a token of two others: a rank file names the result only.
void derive_merges(BpeModel::Source& source) {
  const Vocabulary& vocabulary = source.vocabulary;
  for (TokenId id = 0; id < vocabulary.id_end(); ++id) {
    if (!vocabulary.has(id)) continue;
    const std::string_view text = vocabulary.text(id);
    for (std::size_t middle = 1; middle < text.size(); ++middle) {
      const auto left = vocabulary.find(text.substr(0, middle));
      if (!left) continue;
      const auto right = vocabulary.find(text.substr(middle));
      if (right) source.merges.set(*left, *right, {.rank = id, .id = id});
    }
  }
}

}  // namespace

Result<BpeModel::Source> read_tiktoken(std::string_view ranks) {
  // Like the library: a piece that is a token is that token.
  BpeModel::Source source{.vocabulary = {},
                          .merges = MergeTable(),
                          .options = {.ignore_merges = true},
                          .byte_level = ByteLevel::Yes};
  for (std::size_t line_number = 1; !ranks.empty(); ++line_number) {
    const std::size_t end = std::min(ranks.find('\n'), ranks.size());
    std::string_view line = ranks.substr(0, end);
    ranks.remove_prefix(std::min(end + 1, ranks.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const auto wrong = [&](std::string_view what) {
      return fail(ErrorCode::InvalidFile, fmt::format("line {}: {}", line_number, what));
    };
    const std::size_t space = line.find(' ');
    const auto bytes = base64::decode(line.substr(0, std::min(space, line.size())));
    if (space == line.npos || !bytes || bytes->empty()) {
      return wrong("not a token in base64 and its rank");
    }
    TokenId id = 0;
    const std::string_view number = line.substr(space + 1);
    const auto [stop, bad] = std::from_chars(number.data(), number.data() + number.size(), id);
    if (bad != std::errc() || stop != number.data() + number.size()) {
      return wrong("the rank is not a whole number");
    }
    if (source.vocabulary.add(*bytes, id) != Vocabulary::Added::Yes) {
      return wrong(fmt::format("the token or its rank is there twice, or the rank is not below {}",
                               Vocabulary::kIdLimit));
    }
  }
  if (source.vocabulary.size() == 0) return fail(ErrorCode::InvalidFile, "the file has no tokens");
  derive_merges(source);
  return source;
}

}  // namespace baton::tokenizer
