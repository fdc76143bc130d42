// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer_loader.h"

#include "libs/tokenizer/bpe_model.h"
#include "libs/tokenizer/json_section.h"
#include "libs/tokenizer/tiktoken_file.h"
#include "libs/tokenizer/tokenizer_class.h"
#include "libs/tokenizer/tokenizer_parts.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

namespace baton::tokenizer {
namespace {

// The pattern that transformers assumes for a rank file without one.
constexpr std::string_view kTiktokenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Whether a piece depends on standing at the beginning of the whole text.
bool asks_for_place(simdjson::dom::element json) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) return false;
  std::string_view scheme;
  if (object["prepend_scheme"].get(scheme) == simdjson::SUCCESS && scheme == "first") return true;
  simdjson::dom::array steps;
  if (object["pretokenizers"].get(steps) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::element step : steps) {
    if (asks_for_place(step)) return true;
  }
  return false;
}

// Whether a normalizer can take characters away from the beginning of a text. The library then no
// longer knows that what follows began it.
bool may_strip(simdjson::dom::element json) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) return false;
  simdjson::dom::array steps;
  if (object["normalizers"].get(steps) == simdjson::SUCCESS) {
    for (const simdjson::dom::element step : steps) {
      if (may_strip(step)) return true;
    }
    return false;
  }
  std::string_view type;
  if (object["type"].get(type) != simdjson::SUCCESS) return false;
  for (const std::string_view harmless :
       {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Prepend", "ByteLevel"}) {
    if (type == harmless) return false;
  }
  std::string_view content;
  if (type == "Replace" && object["content"].get(content) == simdjson::SUCCESS) {
    return content.empty();
  }
  return true;
}

simdjson::dom::element member(const JsonSection& file, std::string_view key,
                              simdjson::dom::element null) {
  return file.find(key).value_or(null);
}

}  // namespace

Result<void> TokenizerLoader::read_pre_tokenizer(simdjson::dom::element json,
                                                 const TokenizerConfig& config, Parts& parts) {
  auto made = PreTokenizer::from_json(json);
  if (!made) return fail(std::move(made.error()));
  // The configuration's word on the prefix counts for a pre-tokenizer that is ByteLevel alone.
  std::string_view type;
  if (config.add_prefix_space && json["type"].get(type) == simdjson::SUCCESS &&
      type == "ByteLevel") {
    bool use_regex = true;  // as it stays where the file leaves it out
    std::ignore = json["use_regex"].get(use_regex);
    simdjson::dom::parser parser;
    const simdjson::padded_string changed(fmt::format(
        R"({{"type":"ByteLevel","add_prefix_space":{},"trim_offsets":true,"use_regex":{}}})",
        *config.add_prefix_space, use_regex));
    made = PreTokenizer::from_json(parser.parse(changed).value());
    if (!made) return fail(std::move(made.error()));
  }
  parts.pre_tokenizer = std::move(*made);
  return {};
}

Result<void> TokenizerLoader::read_added_tokens(simdjson::dom::element json, Parts& parts) {
  simdjson::dom::array list;
  if (json.is_null()) return {};
  if (json.get(list) != simdjson::SUCCESS) {
    return fail(ErrorCode::InvalidFile, "\"added_tokens\" is not a list");
  }
  std::size_t at = 0;
  for (const simdjson::dom::element element : list) {
    const auto section = JsonSection::of(element, fmt::format("added_tokens[{}]", at++));
    if (!section) return fail(section.error());
    const auto token = read_added_token(*section, AddedToken{});
    if (!token) return fail(token.error());
    parts.added.add(*token, *parts.model);
  }
  return {};
}

void TokenizerLoader::add_configured(const TokenizerConfig& config, Parts& parts) {
  for (const auto& [id, configured] : config.added) {
    AddedToken token = configured;
    token.special = token.special || config.special(token.content);
    parts.added.add(token, *parts.model);
  }
  const auto add_missing = [&](const AddedToken& token) {
    if (!parts.added.contains(token.content)) parts.added.add(token, *parts.model);
  };
  for (const auto& [name, token] : config.named) add_missing(token);
  for (const AddedToken& token : config.more_special) add_missing(token);
}

PostProcessor TokenizerLoader::configured_tokens(const TokenizerConfig& config, bool bos_by_default,
                                                 const Parts& parts) {
  PostProcessor around;
  const auto put = [&](bool wanted, std::string_view name, TokenIds& side) {
    const AddedToken* const token = config.find_named(name);
    if (!wanted || token == nullptr) return;
    auto id = parts.added.find(token->content);
    if (!id) id = parts.model->find(token->content);
    if (id) side.push_back(*id);
  };
  put(config.add_bos.value_or(bos_by_default), "bos_token", around.before);
  put(config.add_eos.value_or(false), "eos_token", around.after);
  return around;
}

TokenizerLoader::Loaded TokenizerLoader::finish(const TokenizerConfig& config,
                                                std::unique_ptr<Parts> parts) {
  for (const auto& [name, token] : config.named) {
    parts->special_tokens.emplace_back(name, token.content);
  }
  parts->added.finish(parts->normalizer.get());
  const std::shared_ptr<Tokenizer> tokenizer(new Tokenizer(nullptr));
  tokenizer->parts_ = std::move(parts);
  return tokenizer;
}

TokenizerLoader::Loaded TokenizerLoader::from_file(simdjson::dom::element json,
                                                   const TokenizerConfig& config,
                                                   const TokenizerOrigin& origin) {
  const auto file = JsonSection::of(json, "the file");
  if (!file) return fail(file.error());
  const auto known = file->only({"version", "truncation", "padding", "added_tokens", "normalizer",
                                 "pre_tokenizer", "model", "post_processor", "decoder"});
  if (!known) return fail(known.error());
  const auto version = file->find_text("version");
  if (!version) return fail(version.error());
  if (version->value_or("1.0") != "1.0") {
    return file->wrong(fmt::format("the version \"{}\" is not known to Baton", **version));
  }
  const auto model_json = file->find("model");
  if (!model_json) return file->wrong("\"model\" is missing");
  simdjson::dom::parser parser;
  const simdjson::dom::element null = parser.parse(std::string_view("null")).value();

  auto parts = std::make_unique<Parts>();
  const auto rebuilt = rebuilt_pre_tokenizer(config, origin.model_type, json);
  const bool anew = rebuilt && origin.transformers == Transformers::V5;
  simdjson::dom::parser rebuilt_parser;
  simdjson::dom::element pre_tokenizer_json = member(*file, "pre_tokenizer", null);
  if (anew) pre_tokenizer_json = rebuilt_parser.parse(simdjson::padded_string(*rebuilt)).value();
  const simdjson::dom::element normalizer_json = anew ? null : member(*file, "normalizer", null);
  auto normalizer = Normalizer::from_json(normalizer_json);
  if (!normalizer) return fail(std::move(normalizer.error()));
  parts->normalizer = std::move(*normalizer);

  const auto pre_tokenizer = read_pre_tokenizer(pre_tokenizer_json, config, *parts);
  if (!pre_tokenizer) return fail(pre_tokenizer.error());
  if (asks_for_place(pre_tokenizer_json) && may_strip(normalizer_json)) {
    return file->wrong(
        "a pre_tokenizer with the prepend_scheme \"first\" behind a normalizer that may remove "
        "characters is not known to Baton");
  }

  const bool byte_level = parts->pre_tokenizer != nullptr && parts->pre_tokenizer->byte_level();
  auto model = Model::from_json(*model_json, byte_level ? ByteLevel::Yes : ByteLevel::No);
  if (!model) return fail(std::move(model.error()));
  parts->model = std::move(*model);

  auto post_processor = PostProcessor::from_json(member(*file, "post_processor", null));
  if (!post_processor) return fail(std::move(post_processor.error()));
  parts->post_processor = std::move(*post_processor);
  auto decoder = Decoder::from_json(member(*file, "decoder", null));
  if (!decoder) return fail(std::move(decoder.error()));
  parts->decoder = std::move(*decoder);

  const auto added = read_added_tokens(member(*file, "added_tokens", null), *parts);
  if (!added) return fail(added.error());
  add_configured(config, *parts);
  parts->differs_by_release = rebuilt.has_value();
  if (sets_special_tokens(config)) {
    PostProcessor around = configured_tokens(config, true, *parts);
    if (around != parts->post_processor) parts->differs_by_release = true;
    if (origin.transformers == Transformers::V4) parts->post_processor = std::move(around);
  }
  return finish(config, std::move(parts));
}

TokenizerLoader::Loaded TokenizerLoader::from_ranks(std::string_view ranks,
                                                    const TokenizerConfig& config) {
  auto parts = std::make_unique<Parts>();
  auto source = read_tiktoken(ranks);
  if (!source) return fail(std::move(source.error()));
  auto model = BpeModel::make(std::move(*source));
  if (!model) return fail(std::move(model.error()));
  parts->model = std::move(*model);
  auto pre_tokenizer = PreTokenizer::from_pattern(config.pattern ? std::string_view(*config.pattern)
                                                                 : kTiktokenPattern);
  if (!pre_tokenizer) return fail(std::move(pre_tokenizer.error()));
  parts->pre_tokenizer = std::move(*pre_tokenizer);

  simdjson::dom::parser parser;
  const simdjson::padded_string byte_level(std::string_view(R"({"type":"ByteLevel"})"));
  auto decoder = Decoder::from_json(parser.parse(byte_level).value());
  if (!decoder) return fail(std::move(decoder.error()));
  parts->decoder = std::move(*decoder);

  // A rank file has no special tokens, so the configuration's ids are the only word on them.
  for (const auto& [id, configured] : config.added) {
    AddedToken token = configured;
    token.special = token.special || config.special(token.content);
    parts->added.add_as(token, id);
  }
  add_configured(config, *parts);
  parts->post_processor = configured_tokens(config, false, *parts);
  return finish(config, std::move(parts));
}

}  // namespace baton::tokenizer
