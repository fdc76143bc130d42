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

// Where a model's tokenizer and template are.
struct Sources {
  std::filesystem::path folder;
  std::filesystem::path chat_template = {};  // instead of the folder's own
  std::size_t cache_bytes = 64UZ << 20;
};

// What rendering may cost. Little: with tokenizing what it made less than a millisecond, which is enough
// for short requests; where it is not, nothing is made. Full: what a template may cost at all, on a
// thread that gives way to others.
enum class Effort { Little, Full };

// What a preparation is given besides the request.
struct RenderContext {
  std::chrono::system_clock::time_point now;
  std::stop_token stop = {};
  Effort effort = Effort::Full;
  Rules rules = {};  // of the engines that will get it
};

// A request's prompts as the engine will see them; several where a completion names several.
struct Prepared {
  std::vector<tokenizer::TokenIds> prompts;
  // Why these are not the tokens the engine will see (images, audio, truncation it was asked for …);
  // empty: they are.
  std::string inexact = {};
  // Why only vLLM will see these, where they are exact (exactness.h): Baton does it vLLM's way.
  std::string engines_differ = {};
  // It takes more than Effort::Little: nobody knows anything yet.
  bool too_much = false;
  bool exact() const { return inexact.empty(); }
};

// Role. Makes token ids of requests for one model: chat template, tokenizer, and the memory of what
//   was tokenized before.
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
  // What the chat template makes of a body, before tokenizing.
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
