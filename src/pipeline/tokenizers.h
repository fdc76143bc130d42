// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/published.h"
#include "core/result.h"
#include "prompt/preprocessor.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace baton::pipeline {

// How one model's prompts become token ids.
struct ModelTokens {
  config::Tokens settings;
  std::string stamp;  // of the files it was read from
  // One of the two is there.
  std::shared_ptr<const prompt::Preprocessor> preprocessor;  // Baton does it
  std::shared_ptr<tokenizer::SegmentCache> told;             // as reported by workers
  // Whether it has been said that workers are asked another way than they should be.
  std::shared_ptr<std::atomic<bool>> said_route = std::make_shared<std::atomic<bool>>(false);
};

// Role. The tokenizers and chat templates of all models.
// Confinement. configure() on the control thread; the rest on any.
// Invariants. A request's tokenizer stays whole, whatever is configured after.
class Tokenizers {
 public:
  Tokenizers(std::size_t cache_bytes, telemetry::Registry& metrics);

  // Reads new and changed ones, which may take a second for each; keeps the rest. On failure
  // everything stays as it was, and the error names the model, the file and the problem.
  Result<void> configure(std::span<const config::Model> models);

  // Null if the model has no tokenizer configured. `model` is its own name, not an alias.
  std::shared_ptr<const ModelTokens> find(std::string_view model) const;

 private:
  using ByModel = std::map<std::string, std::shared_ptr<const ModelTokens>, std::less<>>;

  // Each model, with its caches.
  void for_each(const std::function<void(const std::string&,
                                         const tokenizer::SegmentCache::Stats&)>& visit) const;
  Result<std::shared_ptr<const ModelTokens>> prepare(const config::Model& model) const;

  std::size_t cache_bytes_;
  Published<ByModel> models_;
};

}  // namespace baton::pipeline
