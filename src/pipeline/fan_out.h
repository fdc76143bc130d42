// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/shared/choice_merge.h"
#include "handoff/handoff.h"
#include "kvcache/view/kv_cache_view.h"
#include "net/task_group.h"
#include "pipeline/prompt_step.h"
#include "pipeline/relay.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace baton::pipeline {

// A request for several choices: one hand-off moves one prompt's cache for one answer, so each
// choice gets its own.
struct FanOut {
  handoff::Handoff& handoff;
  net::TaskGroup& tasks;
  handoff::HandoffRequest job;
  std::vector<engine::Branch> branches;
  std::size_t choices_per_prompt;
  kvcache::KvCacheView& caches;
  PromptTokens tokens;  // of each prompt
  MemoryBudget* memory = nullptr;
};

// Serves the branches in parallel and merges them into one answer. The first failure ends them all,
// and is reported at once; the others complete their hand-offs in the background. The record
// describes one of them: the one that failed, or the first to send a token.
awaitable<Result<void>> serve_branches(FanOut fan_out, Delivery delivery, ResponseSink& sink,
                                       RequestRecord& record, ModelMetrics& metrics,
                                       Cancellation& cancellation);

}  // namespace baton::pipeline
