// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/make_matcher.h"

#include "libs/tokenizer/text/known_members.h"
#include "libs/tokenizer/text/pattern.h"
#include "libs/tokenizer/text/scanner.h"
#include "libs/tokenizer/text/simple_matchers.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

namespace baton::tokenizer {
namespace {

// How many members of the set make a match at most, where the pattern is nothing but one set.
std::optional<std::size_t> run_length(const PatternParts& pattern) {
  const auto& parts = pattern.parts;
  if (parts.empty() || parts.size() > 2 || parts[0].set == PatternParts::kNoSet) {
    return std::nullopt;
  }
  if (parts.size() == 1) {
    return 1;
  }
  std::string_view repeat = parts[1].syntax;
  if (!repeat.starts_with("{1,") || !repeat.ends_with("}")) {
    return std::nullopt;
  }
  repeat.remove_prefix(3);
  repeat.remove_suffix(1);
  std::size_t most = RunMatcher::kNoLimit;
  std::from_chars(repeat.data(), repeat.data() + repeat.size(), most);
  return most;
}

}  // namespace

Result<std::unique_ptr<const Matcher>> match_regex(std::string_view pattern, Dialect dialect) {
  if (auto scanner = scanner_for(pattern)) {
    return scanner;
  }
  auto parts = take_apart(pattern, dialect);
  if (!parts) {
    return fail(parts.error());
  }
  if (const auto most = run_length(*parts)) {
    return std::make_unique<const RunMatcher>(parts->sets[0], *most);
  }
  return Pattern::compile(pattern, *parts);
}

Result<std::unique_ptr<const Matcher>> match_string(std::string_view literal) {
  if (literal.empty()) {
    return Pattern::compile(literal, Dialect::Oniguruma);
  }
  return std::make_unique<const LiteralMatcher>(std::string(literal));
}

Result<std::unique_ptr<const Matcher>> match_json(simdjson::dom::element pattern) {
  std::string_view text;
  for (const std::string_view kind : {"String", "Regex"}) {
    if (pattern[kind].get(text) != simdjson::SUCCESS) {
      continue;
    }
    if (const auto unknown = find_unknown_member(pattern.get_object().value(), {&kind, 1})) {
      return fail(ErrorCode::InvalidFile,
                  fmt::format("A pattern of the tokenizer has `{}` beside its `{}`, which Baton "
                              "does not know.",
                              *unknown, kind));
    }
    return kind == "String" ? match_string(text) : match_regex(text, Dialect::Oniguruma);
  }
  return fail(ErrorCode::InvalidFile,
              "A pattern of the tokenizer is neither {\"String\": …} nor {\"Regex\": …}.");
}

}  // namespace baton::tokenizer
