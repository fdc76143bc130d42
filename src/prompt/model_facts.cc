// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/model_facts.h"

#include "prompt/file_text.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace baton::prompt {
namespace {

// The names by which configurations call their context; where there are several, the least counts.
constexpr std::string_view kContextKeys[] = {
    "max_position_embeddings", "n_positions",         "max_seq_len",    "seq_length",
    "model_max_length",        "max_sequence_length", "max_seq_length", "seq_len"};
// Models whose chats engines write with code of their own in place of a template (harmony, for
// gpt_oss).
constexpr std::string_view kCodedRenderers[] = {"gpt_oss", "deepseek_v32", "deepseek_v4",
                                                "deepseek_v41", "kimi_k3"};
// Tokenizers without a limit write 1e30; no real context is near this.
constexpr std::int64_t kUnlimited = 1'000'000'000;

std::optional<std::int64_t> sensible(const wire::JsonObject& object, std::string_view key) {
  const auto value = object.find_integer(key);
  if (!value || *value <= 0 || *value >= kUnlimited) return std::nullopt;
  return value;
}

std::optional<double> find_number(const wire::JsonObject& object, std::string_view key) {
  const auto raw = object.find(key);
  if (!raw) return std::nullopt;
  char* end = nullptr;
  const std::string digits(*raw);
  const double number = std::strtod(digits.c_str(), &end);
  if (end == digits.c_str()) return std::nullopt;
  return number;
}

// How rope scaling stretches the context.
std::int64_t stretched(std::int64_t context, const wire::JsonObject& config) {
  auto rope = config.find_object("rope_scaling");
  if (!rope) rope = config.find_object("rope_parameters");
  const auto factor = rope ? find_number(*rope, "factor") : std::nullopt;
  if (!factor || *factor <= 1 || *factor > 1024) return context;
  auto type = rope->find_string("rope_type");
  if (!type) type = rope->find_string("type");
  // These kinds have put the factor into max_position_embeddings already.
  for (const char* const settled : {"default", "su", "longrope", "llama3", "mrope"}) {
    if (type == settled) return context;
  }
  const auto original =
      type == "yarn" ? sensible(*rope, "original_max_position_embeddings") : std::nullopt;
  return static_cast<std::int64_t>(static_cast<double>(original.value_or(context)) * *factor);
}

std::optional<std::int64_t> context_of(const wire::JsonObject& config) {
  std::optional<std::int64_t> least;
  for (const std::string_view key : kContextKeys) {
    if (const auto value = sensible(config, key)) least = std::min(least.value_or(*value), *value);
  }
  return least ? std::optional(stretched(*least, config)) : std::nullopt;
}

// Calls `use` with the object in the file, where there is one.
template <class Use>
Result<void> with_object(const std::filesystem::path& path, Use use) {
  const auto text = file_text(path);
  if (!text) return fail(text.error());
  if (!*text) return {};
  const auto object = wire::JsonObject::parse(**text);
  if (!object) {
    return fail(Errc::InvalidRequest,
                fmt::format("{}: {}", path.string(), object.error().message()));
  }
  use(*object);
  return {};
}

}  // namespace

Result<ModelFacts> model_facts(const std::filesystem::path& folder) {
  ModelFacts facts;
  auto read = with_object(folder / "config.json", [&](const wire::JsonObject& config) {
    // Multimodal models keep the text model's members in an object of its own.
    const auto text = config.find_object("text_config");
    auto context = context_of(config);
    auto vocabulary = sensible(config, "vocab_size");
    if (text && !context) context = context_of(*text);
    if (text && !vocabulary) vocabulary = sensible(*text, "vocab_size");
    if (context) facts.max_model_length = static_cast<std::size_t>(*context);
    if (vocabulary) facts.vocabulary_size = static_cast<std::size_t>(*vocabulary);
    const auto type = config.find_string("model_type");
    if (type && std::ranges::find(kCodedRenderers, *type) != std::end(kCodedRenderers)) {
      facts.coded_renderer = *type;
    }
  });
  if (!read) return fail(read.error());
  read = with_object(folder / "tokenizer_config.json", [&](const wire::JsonObject& config) {
    const auto length = sensible(config, "model_max_length");
    if (!length) return;
    const auto limit = static_cast<std::size_t>(*length);
    facts.max_model_length = std::min(facts.max_model_length.value_or(limit), limit);
  });
  if (!read) return fail(read.error());
  return facts;
}

}  // namespace baton::prompt
