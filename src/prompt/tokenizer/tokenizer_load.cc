// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tokenizer/tokenizer.h"
#include "prompt/tokenizer/tokenizer_config.h"
#include "prompt/tokenizer/tokenizer_loader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace baton::prompt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTokenizerFile = "tokenizer.json";
constexpr std::string_view kConfigFile = "tokenizer_config.json";
constexpr std::string_view kModelFile = "config.json";
// The largest real files are a tenth of this.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{512} << 20;

std::unexpected<Error> in_file(std::string_view file, const Error& error) {
  return fail(error.code(), fmt::format("{}: {}", file, error.message()));
}

Result<std::string> read_file(const fs::path& path, std::size_t padding) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  const std::string name = path.filename().string();
  if (error || size > kMostBytes) {
    return fail(Errc::InvalidRequest, fmt::format("{}: cannot be read, or is too large", name));
  }
  std::string text;
  text.reserve(size + padding);
  text.resize(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    return fail(Errc::InvalidRequest, fmt::format("{}: cannot be read", name));
  }
  return text;
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

// What config.json says; nothing where it is not there or cannot be read, which is the business of
// whoever needs the rest of it.
std::string model_type_in(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kModelFile, error)) return {};
  const auto text = read_file(folder / kModelFile, 0);
  if (!text) return {};
  simdjson::dom::parser parser;
  std::string_view type;
  if (parser.parse(simdjson::padded_string(*text))["model_type"].get(type) != simdjson::SUCCESS)
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
    return fail(Errc::InvalidRequest, fmt::format("{}: not valid JSON: {}", kTokenizerFile,
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
                                                         Transformers release) {
  std::string config;
  std::error_code error;
  if (fs::exists(folder / kConfigFile, error)) {
    auto read = read_file(folder / kConfigFile, 0);
    if (!read) return fail(std::move(read.error()));
    config = std::move(*read);
  }
  if (fs::exists(folder / kTokenizerFile, error)) {
    auto read = read_file(folder / kTokenizerFile, simdjson::SIMDJSON_PADDING);
    if (!read) return fail(std::move(read.error()));
    return from_json(std::move(*read), config,
                     {.transformers = release, .model_type = model_type_in(folder)});
  }
  if (const auto ranks = find_ranks(folder)) {
    const auto read = read_file(*ranks, 0);
    if (!read) return fail(read.error());
    return from_tiktoken(*read, config);
  }
  return fail(Errc::InvalidRequest,
              fmt::format("{}: neither tokenizer.json nor a tiktoken rank file (tiktoken.model, "
                          "*.tiktoken) is there",
                          folder.string()));
}

}  // namespace baton::prompt
