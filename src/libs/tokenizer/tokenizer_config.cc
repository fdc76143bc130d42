// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_config.h"

#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace baton::tokenizer {
namespace {

constexpr std::array<std::string_view, 7> kNamed = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

// A string, or an object with all that an AddedToken can say. Special tokens are found in the text
// as it is, if nothing else is said.
Result<AddedToken> read_special(simdjson::dom::element json, std::string name) {
  AddedToken token{.content = {}, .normalized = false, .special = true};
  std::string_view content;
  if (json.get(content) == simdjson::SUCCESS) {
    token.content = content;
    return token;
  }
  const auto section = JsonSection::of(json, std::move(name));
  if (!section) return fail(section.error());
  auto read = read_added_token(*section, token);
  if (read) read->special = true;
  return read;
}

Result<void> read_added(const JsonSection& file, TokenizerConfig& config) {
  if (!file.find("added_tokens_decoder")) return {};
  const auto table = file.section("added_tokens_decoder");
  if (!table) return fail(table.error());
  for (const auto& [key, value] : table->object()) {
    TokenId id = 0;
    const auto [end, wrong] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (wrong != std::errc() || end != key.data() + key.size() || id >= Vocabulary::kIdLimit) {
      return table->wrong(fmt::format("\"{}\" is not an id below {}", key, Vocabulary::kIdLimit));
    }
    const auto section = JsonSection::of(value, fmt::format("added_tokens_decoder.{}", id));
    if (!section) return fail(section.error());
    auto token = read_added_token(*section, AddedToken{});
    if (!token) return fail(std::move(token.error()));
    config.added.emplace_back(id, std::move(*token));
  }
  std::ranges::sort(config.added, {}, &std::pair<TokenId, AddedToken>::first);
  return {};
}

Result<void> read_list(const JsonSection& file, std::string_view key, TokenizerConfig& config) {
  const auto list = file.array(key);
  if (!list) return fail(list.error());
  for (const simdjson::dom::element element : *list) {
    auto token = read_special(element, std::string(key));
    if (!token) return fail(std::move(token.error()));
    config.more_special.push_back(std::move(*token));
  }
  return {};
}

Result<void> read_named(const JsonSection& file, TokenizerConfig& config) {
  for (const std::string_view name : kNamed) {
    const auto value = file.find(name);
    if (!value) continue;
    auto token = read_special(*value, std::string(name));
    if (!token) return fail(std::move(token.error()));
    config.named.emplace_back(name, std::move(*token));
  }
  if (file.find("additional_special_tokens")) {
    const auto read = read_list(file, "additional_special_tokens", config);
    if (!read) return read;
  }
  const auto extra = file.find("extra_special_tokens");
  if (!extra) return {};
  if (extra->is_array()) return read_list(file, "extra_special_tokens", config);
  const auto section = file.section("extra_special_tokens");
  if (!section) return fail(section.error());
  for (const auto& [name, value] : section->object()) {
    auto token = read_special(value, std::string(name));
    if (!token) return fail(std::move(token.error()));
    config.named.emplace_back(name, std::move(*token));
  }
  return {};
}

Result<std::optional<bool>> find_flag(const JsonSection& file, std::string_view key) {
  if (!file.find(key)) return std::nullopt;
  const auto flag = file.flag(key, false);
  if (!flag) return fail(flag.error());
  return *flag;
}

Result<void> read_settings(const JsonSection& file, TokenizerConfig& config) {
  const std::pair<std::string_view, std::optional<bool>*> flags[] = {
      {"add_bos_token", &config.add_bos},
      {"add_eos_token", &config.add_eos},
      {"add_prefix_space", &config.add_prefix_space},
      {"legacy", &config.legacy}};
  for (const auto& [key, target] : flags) {
    const auto flag = find_flag(file, key);
    if (!flag) return fail(flag.error());
    *target = *flag;
  }
  // The first leaves special tokens in the text to the model, the second puts another regular
  // expression in the place of the file's.
  for (const std::string_view key : {"split_special_tokens", "fix_mistral_regex"}) {
    const auto flag = file.flag(key, false);
    if (!flag) return fail(flag.error());
    if (*flag) return file.wrong(fmt::format("\"{}\": true is not known to Baton", key));
  }
  const auto name = file.find_text("tokenizer_class");
  if (!name) return fail(name.error());
  std::string_view bare = name->value_or("");
  if (bare.ends_with("Fast")) bare.remove_suffix(4);
  config.tokenizer_class = bare;
  config.remote_code = file.find("auto_map").has_value();
  for (const std::string_view key : {"pat_str", "pattern"}) {
    const auto pattern = file.find_text(key);
    if (!pattern) return fail(pattern.error());
    if (*pattern && !config.pattern) config.pattern = std::string(**pattern);
  }
  return {};
}

// Python writes whole numbers of any length (`model_max_length`), which the parser refuses. Those
// that cannot matter here are cut to what it takes, a little smaller than they were.
std::string with_shorter_numbers(std::string_view json) {
  constexpr std::size_t kMostDigits = 18;
  std::string result;
  result.reserve(json.size());
  bool in_string = false;
  std::size_t digits = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char one = json[at];
    if (in_string && one == '\\' && at + 1 < json.size()) {
      result.push_back(one);
      result.push_back(json[++at]);
      continue;
    }
    if (one == '"') in_string = !in_string;
    digits = !in_string && one >= '0' && one <= '9' ? digits + 1 : 0;
    if (digits <= kMostDigits) result.push_back(one);
  }
  return result;
}

}  // namespace

Result<AddedToken> read_added_token(const JsonSection& section, AddedToken otherwise) {
  // transformers writes `__type` where the token stands in a configuration.
  const auto known = section.only(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"});
  if (!known) return fail(known.error());
  const auto content = section.text("content");
  if (!content) return fail(content.error());
  otherwise.content = *content;
  const std::pair<std::string_view, bool*> flags[] = {{"single_word", &otherwise.single_word},
                                                      {"lstrip", &otherwise.lstrip},
                                                      {"rstrip", &otherwise.rstrip},
                                                      {"special", &otherwise.special}};
  for (const auto& [key, target] : flags) {
    const auto flag = section.flag(key, *target);
    if (!flag) return fail(flag.error());
    *target = *flag;
  }
  const auto normalized = section.flag("normalized", !otherwise.special);
  if (!normalized) return fail(normalized.error());
  otherwise.normalized = *normalized;
  return otherwise;
}

Result<TokenizerConfig> TokenizerConfig::from_json(std::string_view json) {
  TokenizerConfig config;
  if (json.empty()) return config;
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::padded_string padded(with_shorter_numbers(json));
  if (const auto wrong = parser.parse(padded).get(root); wrong != simdjson::SUCCESS) {
    return fail(ErrorCode::InvalidFile,
                fmt::format("not valid JSON: {}", simdjson::error_message(wrong)));
  }
  const auto file = JsonSection::of(root, "the file");
  if (!file) return fail(file.error());
  for (const auto read : {read_added, read_named, read_settings}) {
    const auto done = read(*file, config);
    if (!done) return fail(done.error());
  }
  return config;
}

const AddedToken* TokenizerConfig::find_named(std::string_view name) const {
  const auto found = std::ranges::find(named, name, &std::pair<std::string, AddedToken>::first);
  return found == named.end() ? nullptr : &found->second;
}

bool TokenizerConfig::special(std::string_view content) const {
  return std::ranges::any_of(named, [&](const auto& one) { return one.second.content == content; });
}

}  // namespace baton::tokenizer
