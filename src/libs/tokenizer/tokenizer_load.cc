// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/file_reader.h"
#include "libs/tokenizer/tokenizer.h"
#include "libs/tokenizer/tokenizer_config.h"
#include "libs/tokenizer/tokenizer_loader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace baton::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizerFile = "tokenizer.json";
constexpr std::string_view kConfigFile = "tokenizer_config.json";
constexpr std::string_view kModelFile = "config.json";
// The largest real files are a tenth of this.
constexpr std::size_t kMostBytes = std::size_t{512} << 20;

std::unexpected<Error> in_file(std::string_view file, const Error& error) {
  return fail(error.code(), fmt::format("{}: {}", file, error.message()));
}

// Nothing where the file is not there.
Result<std::optional<std::string>> text_of(const fs::path& path, const FileReader& read) {
  auto text = read(path, kMostBytes);
  if (text) return *std::move(text);
  return fail(ErrorCode::InvalidFile,
              fmt::format("{}: cannot be read: {}", path.filename().string(), text.error()));
}

// The folder's rank file; by name, so that the choice does not depend on the file system.
std::optional<fs::path> find_ranks(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    if (path.filename() == "tiktoken.model" || path.extension() == ".tiktoken") {
      found.push_back(path);
    }
  }
  if (found.empty()) return std::nullopt;
  return *std::ranges::min_element(found);
}

Result<TokenizerConfig> read_config(std::string_view json) {
  auto config = TokenizerConfig::from_json(json);
  if (!config) return in_file(kConfigFile, config.error());
  return config;
}

// `model_type` of config.json; empty if the file is absent or unreadable: the reader of its other
// members reports that.
std::string model_type_in(const fs::path& folder, const FileReader& read) {
  const auto text = text_of(folder / kModelFile, read);
  if (!text || !*text) return {};
  simdjson::dom::parser parser;
  std::string_view type;
  if (parser.parse(simdjson::padded_string(**text))["model_type"].get(type) != simdjson::SUCCESS)
    return {};
  return std::string(type);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_json(std::string tokenizer_json,
                                                              std::string_view config_json,
                                                              const TokenizerOrigin& origin) {
  const auto config = read_config(config_json);
  if (!config) return fail(config.error());
  tokenizer_json.reserve(tokenizer_json.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::parser parser;
  simdjson::dom::element file;
  const auto wrong = parser.parse(tokenizer_json.data(), tokenizer_json.size(), false).get(file);
  if (wrong != simdjson::SUCCESS) {
    return fail(ErrorCode::InvalidFile, fmt::format("{}: not valid JSON: {}", kTokenizerFile,
                                                    simdjson::error_message(wrong)));
  }
  auto loaded = TokenizerLoader::from_file(file, *config, origin);
  if (!loaded) return in_file(kTokenizerFile, loaded.error());
  return loaded;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tiktoken(std::string_view ranks,
                                                                  std::string_view config_json) {
  const auto config = read_config(config_json);
  if (!config) return fail(config.error());
  auto loaded = TokenizerLoader::from_ranks(ranks, *config);
  if (!loaded) return in_file("tiktoken ranks", loaded.error());
  return loaded;
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const fs::path& folder,
                                                         Transformers release,
                                                         const FileReader& read) {
  auto config = text_of(folder / kConfigFile, read);
  if (!config) return fail(std::move(config.error()));
  const std::string config_json = std::move(*config).value_or("");
  auto file = text_of(folder / kTokenizerFile, read);
  if (!file) return fail(std::move(file.error()));
  if (*file) {
    return from_json(**std::move(file), config_json,
                     {.transformers = release, .model_type = model_type_in(folder, read)});
  }
  if (const auto path = find_ranks(folder)) {
    const auto ranks = text_of(*path, read);
    if (!ranks) return fail(ranks.error());
    if (*ranks) return from_tiktoken(**ranks, config_json);
  }
  return fail(ErrorCode::InvalidFile,
              fmt::format("{}: neither tokenizer.json nor a tiktoken rank file (tiktoken.model, "
                          "*.tiktoken) is there",
                          folder.string()));
}

}  // namespace baton::tokenizer
