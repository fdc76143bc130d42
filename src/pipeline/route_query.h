// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "fleet/fleet.h"
#include "handoff/request.h"
#include "kvcache/view/kv_cache_view.h"
#include "pipeline/prompt_step.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"

#include <boost/asio/awaitable.hpp>

#include <string>
#include <utility>

namespace baton::pipeline {

// The workers that would serve a request, with every candidate and its score, as JSON. Nothing is
// booked, no turn is used up, and the prompt is not recorded as sent.
Result<std::string> describe_route(const handoff::HandoffRequest& job, const Random& random);

// The same as the answer to a client that asked for it instead of for a completion.
awaitable<Result<void>> answer_query(const handoff::HandoffRequest& job, const Random& random,
                                     ResponseSink& sink, RequestRecord& record);

// Role. Answers which workers would serve a request: it is parsed and tokenized as usual, but not
//   sent.
// Confinement. One I/O thread.
class RouteQuery {
 public:
  RouteQuery(fleet::Fleet& fleet, kvcache::KvCacheView& caches, PromptStep& prompts,
             RequestLedger& ledger, Random random)
      : fleet_(fleet),
        cache_view_(caches),
        prompts_(prompts),
        ledger_(ledger),
        random_(std::move(random)) {}

  // Headers and body as a client would send them, from a trusted caller.
  awaitable<Result<std::string>> describe(wire::Headers headers, std::string body,
                                          MemoryShare memory, Cancellation& cancellation);

 private:
  fleet::Fleet& fleet_;
  kvcache::KvCacheView& cache_view_;
  PromptStep& prompts_;
  RequestLedger& ledger_;
  Random random_;
};

}  // namespace baton::pipeline
