// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using Stats = tokenizer::SegmentCache::Stats;

// The files with their sizes and times: if none of it changes, nothing is read again.
std::string stamp_of(const config::Tokens& tokens) {
  std::vector<std::string> parts;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    const auto time = fs::last_write_time(path, error);
    if (!error)
      parts.push_back(
          fmt::format("{}:{}:{}", path.string(), size, time.time_since_epoch().count()));
  };
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(tokens.tokenizer, error))
    add(entry.path());
  if (!tokens.chat_template.empty()) add(tokens.chat_template);
  std::ranges::sort(parts);
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

Tokenizers::Tokenizers(std::size_t cache_bytes, telemetry::Registry& metrics)
    : cache_bytes_(cache_bytes) {
  using telemetry::Registry;
  metrics.collect("baton_token_cache_bytes", "Memory held for the tokens of texts seen before.",
                  [this](const Registry::Emit& emit) {
                    for_each([&](const std::string& model, const Stats& stats) {
                      emit({{"model", model}}, static_cast<std::int64_t>(stats.bytes));
                    });
                  });
  metrics.collect("baton_token_cache_hits", "Texts whose tokens were remembered.",
                  [this](const Registry::Emit& emit) {
                    for_each([&](const std::string& model, const Stats& stats) {
                      emit({{"model", model}}, static_cast<std::int64_t>(stats.hits));
                    });
                  });
  metrics.collect("baton_token_cache_misses", "Texts whose tokens were not.",
                  [this](const Registry::Emit& emit) {
                    for_each([&](const std::string& model, const Stats& stats) {
                      emit({{"model", model}}, static_cast<std::int64_t>(stats.misses));
                    });
                  });
}

Result<void> Tokenizers::configure(std::span<const config::Model> models) {
  ByModel next;
  for (const config::Model& model : models) {
    if (model.tokens.by == model::Tokenize::Off) continue;
    auto prepared = prepare(model);
    if (!prepared) return fail(std::move(prepared.error()));
    next.emplace(model.name, *std::move(prepared));
  }
  models_.set(std::move(next));
  return {};
}

Result<std::shared_ptr<const ModelTokens>> Tokenizers::prepare(const config::Model& model) const {
  const bool local = model.tokens.by == model::Tokenize::Local;
  ModelTokens made{.settings = model.tokens,
                   .stamp = local ? stamp_of(model.tokens) : std::string(),
                   .preprocessor = nullptr,
                   .told = nullptr};
  if (const auto known = find(model.name);
      known && known->settings == made.settings && known->stamp == made.stamp) {
    return known;
  }
  if (!local) {
    made.told = std::make_shared<tokenizer::SegmentCache>(cache_bytes_);
    return std::make_shared<const ModelTokens>(std::move(made));
  }
  auto loaded = prompt::Preprocessor::load({.folder = model.tokens.tokenizer,
                                            .chat_template = model.tokens.chat_template,
                                            .cache_bytes = cache_bytes_});
  if (!loaded) {
    return fail(Errc::Internal, fmt::format("the tokenizer of the model \"{}\" cannot be used: {}",
                                            model.name, loaded.error().message()));
  }
  made.preprocessor = *std::move(loaded);
  return std::make_shared<const ModelTokens>(std::move(made));
}

std::shared_ptr<const ModelTokens> Tokenizers::find(std::string_view model) const {
  const auto models = models_.get();
  const auto found = models->find(model);
  return found == models->end() ? nullptr : found->second;
}

void Tokenizers::for_each(
    const std::function<void(const std::string&, const Stats&)>& visit) const {
  const auto models = models_.get();
  for (const auto& [name, tokens] : *models) {
    visit(name, tokens->told ? tokens->told->stats() : tokens->preprocessor->cache_stats());
  }
}

}  // namespace baton::pipeline
