// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/tokenizer/segment_cache.h"
#include "libs/tokenizer/token.h"
#include "libs/tokenizer/tokenizer.h"
#include "prompt/rules.h"
#include "wire/json_object.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace baton::prompt {

// Location of a model's tokenizer and template.
struct Sources {
  std::filesystem::path folder;
  std::filesystem::path chat_template = {};  // instead of the folder's own
  std::size_t cache_bytes = 64UZ << 20;
};

// Bound on the cost of rendering. Little: less than a millisecond with tokenizing, enough for short
// requests; past it nothing is produced. Full: the most a template may cost at all, on a thread
// that yields to others.
enum class Effort { Little, Full };

// Inputs of a preparation besides the request.
struct RenderContext {
  std::chrono::system_clock::time_point now;
  std::stop_token stop = {};
  Effort effort = Effort::Full;
  Rules rules = {};  // of the engines that will get it
};

// A request's prompts as the engine will see them; several where a completion names several.
struct Prepared {
  std::vector<tokenizer::TokenIds> prompts;
  // Reason why these are not the tokens the engine will see (images, audio, a requested truncation
  // …); empty: they are.
  std::string inexact = {};
  // Reason why, if exact, only vLLM will see these (exactness.h): Baton shapes the request vLLM's
  // way.
  std::string engines_differ = {};
  // It takes more than Effort::Little: nothing is known yet.
  bool too_much = false;
  bool exact() const { return inexact.empty(); }
};

// Role. Turns requests for one model into token ids: chat template, tokenizer, and a cache of text
//   that was tokenized before.
// Confinement. Any thread.
class Preprocessor {
 public:
  // Errors name the file and what is wrong with it.
  static Result<std::shared_ptr<const Preprocessor>> load(const Sources& sources);
  ~Preprocessor();
  Preprocessor(const Preprocessor&) = delete;
  Preprocessor& operator=(const Preprocessor&) = delete;

  // A body of /v1/chat/completions, or vLLM's /tokenize with messages.
  Result<Prepared> chat(const wire::JsonObject& body, const RenderContext& context) const;
  // A body of /v1/completions, or vLLM's /tokenize with a prompt.
  Result<Prepared> completion(const wire::JsonObject& body, const RenderContext& context) const;
  // The body after the chat template, before tokenizing.
  Result<std::string> rendered(const wire::JsonObject& body, const RenderContext& context) const;

  const tokenizer::Tokenizer& tokenizer(const Rules& rules = {}) const;
  bool has_chat_template() const;
  // The model's longest context, where its files say so.
  std::optional<std::size_t> max_model_length() const;
  // The model's token ids are below it, where its files say so.
  std::optional<std::size_t> vocabulary_size() const;
  tokenizer::SegmentCache::Stats cache_stats() const;

 private:
  struct Parts;
  explicit Preprocessor(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace baton::prompt
