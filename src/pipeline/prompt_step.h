// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "engine/shared/client_body.h"
#include "handoff/request.h"
#include "kvcache/view/kv_cache_view.h"
#include "kvcache/view/prompt_blocks.h"
#include "net/cpu_pool.h"
#include "pipeline/engine_tokens.h"
#include "pipeline/request_record.h"
#include "pipeline/tokenizers.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace baton::pipeline {

using boost::asio::awaitable;

// The known tokens and blocks of a request's prompts.
struct PromptTokens {
  // As engine::token_ids_json writes them, for workers: one text for the whole request or, if it is
  // fanned out, one for each prompt. Empty: unknown, or not to be sent.
  std::vector<std::shared_ptr<const std::string>> json = {};
  model::SendTokenIds send = model::SendTokenIds::Auto;
  // As caches have them, in the same number; empty if unknown.
  std::vector<std::shared_ptr<const kvcache::PromptBlocks>> blocks = {};

  std::size_t bytes() const;
};

enum class PerPrompt { No, Yes };

// The length of a request's prompts; an estimate if the tokens were not counted.
std::uint64_t estimated_tokens(const RequestRecord& record);

// Puts the facts of prompt `prompt` of `tokens` into a request, and into its record.
void attach_prompt(handoff::HandoffRequest& job, const PromptTokens& tokens, std::size_t prompt,
                   kvcache::KvCacheView& caches, RequestRecord& record);

// Role. The step between reading a request and choosing its workers: checks the body, renders its
//   chat template and tokenizes its text, off the I/O thread if that takes long.
// Confinement. One I/O thread.
class PromptStep {
 public:
  PromptStep(const Tokenizers& tokenizers, const kvcache::KvCacheView& caches, net::CpuPool& cpu,
             EngineTokens engines)
      : tokenizers_(tokenizers), cache_view_(caches), cpu_(cpu), engines_(engines) {}

  // `memory` has the body; MemoryExhausted if there is not enough to read it.
  awaitable<Result<std::shared_ptr<const engine::ClientBody>>> read(std::string body,
                                                                    MemoryShare memory);

  // For other work on all of a long text.
  net::CpuPool& cpu() const { return cpu_; }

  // `record` notes how it came about. Fails if the prompt cannot be made, which is the client's
  // fault, or if the request was cancelled. An engine that was asked in vain is no failure: its
  // request goes on without.
  awaitable<Result<PromptTokens>> tokens(const handoff::HandoffRequest& job, PerPrompt per_prompt,
                                         RequestRecord& record, Cancellation& cancellation);

 private:
  kvcache::HashPlan plan_for(const handoff::HandoffRequest& job) const;
  template <class Work>
  awaitable<std::invoke_result_t<Work&>> run(std::size_t bytes, Work work);
  awaitable<Result<PromptTokens>> tokenize(std::shared_ptr<const ModelTokens> model,
                                           const handoff::HandoffRequest& job, PerPrompt per_prompt,
                                           RequestRecord& record, Cancellation& cancellation);
  awaitable<Result<void>> check_given(const handoff::HandoffRequest& job, const ModelTokens* model);
  awaitable<std::optional<PromptTokens>> take_given(const handoff::HandoffRequest& job,
                                                    PerPrompt per_prompt, RequestRecord& record);
  awaitable<PromptTokens> ask_engine(std::shared_ptr<const ModelTokens> model,
                                     const handoff::HandoffRequest& job, PerPrompt per_prompt,
                                     RequestRecord& record, Cancellation& cancellation);

  const Tokenizers& tokenizers_;
  const kvcache::KvCacheView& cache_view_;
  net::CpuPool& cpu_;
  EngineTokens engines_;
};

}  // namespace baton::pipeline
