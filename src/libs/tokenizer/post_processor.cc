// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/post_processor.h"

#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace baton::tokenizer {
namespace {

constexpr KnownMembers kPostProcessors[] = {
    {"BertProcessing", {"sep", "cls"}},
    {"ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"}},
    {"RobertaProcessing", {"sep", "cls", "trim_offsets", "add_prefix_space"}},
    {"Sequence", {"processors"}},
    // Command R's files say so; the library reads past the three.
    {"TemplateProcessing",
     {"single", "pair", "special_tokens", "add_prefix_space", "trim_offsets", "use_regex"}},
};

Result<TokenId> checked_id(const JsonSection& section, std::uint64_t id) {
  if (id < Vocabulary::kIdLimit) return static_cast<TokenId>(id);
  return section.wrong(
      fmt::format("the id {} is too large; Baton takes ids below {}", id, Vocabulary::kIdLimit));
}

// `["[CLS]", 101]`.
Result<TokenId> named_id(const JsonSection& section, std::string_view key) {
  const auto pair = section.array(key);
  if (!pair) return fail(pair.error());
  std::uint64_t id = 0;
  if (pair->size() != 2 || pair->at(1).get(id) != simdjson::SUCCESS) {
    return section.wrong(fmt::format("\"{}\" is not a token and its id", key));
  }
  return checked_id(section, id);
}

// Both put one token before the text and one behind it.
Result<PostProcessor> enclosing(const JsonSection& section) {
  const auto before = named_id(section, "cls");
  if (!before) return fail(before.error());
  const auto after = named_id(section, "sep");
  if (!after) return fail(after.error());
  return PostProcessor{.before = {*before}, .after = {*after}};
}

Result<TokenIds> template_ids(const JsonSection& section, std::string_view name) {
  const auto table = section.section("special_tokens");
  if (!table) return fail(table.error());
  const auto token = table->section(name);
  if (!token) return fail(token.error());
  if (const auto known = token->only({"id", "ids", "tokens"}); !known) return fail(known.error());
  const auto numbers = token->array("ids");
  if (!numbers) return fail(numbers.error());
  TokenIds ids;
  for (const simdjson::dom::element number : *numbers) {
    std::uint64_t id = 0;
    if (number.get(id) != simdjson::SUCCESS) return token->wrong("\"ids\" are not all numbers");
    const auto checked = checked_id(*token, id);
    if (!checked) return fail(checked.error());
    ids.push_back(*checked);
  }
  return ids;
}

// The name in a piece of a template: `{"SpecialToken": {"id": NAME, "type_id": 0}}`.
Result<std::string_view> piece_name(const JsonSection& piece, std::string_view kind) {
  if (const auto known = piece.only({kind}); !known) return fail(known.error());
  const auto section = piece.section(kind);
  if (!section) return fail(section.error());
  if (const auto known = section->only({"id", "type_id"}); !known) return fail(known.error());
  return section->text("id");
}

Result<PostProcessor> templated(const JsonSection& section) {
  const auto pieces = section.array("single");
  if (!pieces) return fail(pieces.error());
  PostProcessor result;
  bool text_seen = false;
  for (const simdjson::dom::element element : *pieces) {
    const auto piece = JsonSection::of(element, section.name() + ".single");
    if (!piece) return fail(piece.error());
    if (piece->find("Sequence")) {
      const auto id = piece_name(*piece, "Sequence");
      if (!id) return fail(id.error());
      if (*id != "A" || text_seen) return piece->wrong("the text is to come once, as \"A\"");
      text_seen = true;
      continue;
    }
    const auto name = piece_name(*piece, "SpecialToken");
    if (!name) return fail(name.error());
    const auto ids = template_ids(section, *name);
    if (!ids) return fail(ids.error());
    TokenIds& side = text_seen ? result.after : result.before;
    side.insert(side.end(), ids->begin(), ids->end());
  }
  if (!text_seen) return section.wrong("\"single\" has no place for the text");
  return result;
}

Result<PostProcessor> chained(const JsonSection& section) {
  const auto processors = section.array("processors");
  if (!processors) return fail(processors.error());
  PostProcessor result;
  for (const simdjson::dom::element element : *processors) {
    auto next = PostProcessor::from_json(element);
    if (!next) return fail(std::move(next.error()));
    result.before.insert(result.before.begin(), next->before.begin(), next->before.end());
    result.after.insert(result.after.end(), next->after.begin(), next->after.end());
  }
  return result;
}

}  // namespace

Result<PostProcessor> PostProcessor::from_json(simdjson::dom::element json) {
  if (json.is_null()) return PostProcessor{};
  const auto section = JsonSection::of(json, "post_processor");
  if (!section) return fail(section.error());
  const auto type = section->text("type");
  if (!type) return fail(type.error());
  if (const auto known = section->only(*type, kPostProcessors); !known) return fail(known.error());
  if (*type == "ByteLevel") return PostProcessor{};  // changes offsets, not ids
  if (*type == "BertProcessing" || *type == "RobertaProcessing") return enclosing(*section);
  if (*type == "TemplateProcessing") return templated(*section);
  if (*type == "Sequence") return chained(*section);
  return fail(ErrorCode::InvalidFile,
              fmt::format("the post_processor \"{}\" is not known to Baton", *type));
}

}  // namespace baton::tokenizer
