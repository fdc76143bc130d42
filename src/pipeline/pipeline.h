// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/cancellation.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "engine/shared/choice_merge.h"
#include "engine/shared/dialect.h"
#include "fleet/fleet.h"
#include "handoff/handoff.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "pipeline/forwarding.h"
#include "pipeline/prompt_step.h"
#include "pipeline/relay.h"
#include "pipeline/request_deadline.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"
#include "scheduling/policy/trust.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace baton::pipeline {

// A request as the front hands it in.
struct ClientRequest {
  engine::Api api;
  wire::Headers headers;
  std::string body;
  std::string request_id;
  std::chrono::steady_clock::time_point received;
  scheduling::Trusted trusted;  // whether it may say which workers serve
  std::string client = {};      // which key it came with, never the key; empty: without one
  MemoryShare memory = {};      // has the body
};

struct Options {
  ForwardAuthorization forward_authorization;
  std::size_t response_bytes;
  config::ClientHandoffFields handoff_fields;
  bool tell_workers;                               // in response headers
  int overload_status;                             // 0: as the engine said
  std::vector<std::string> stripped_headers = {};  // of clients; no worker gets them
  std::chrono::milliseconds request_timeout{0};    // from a request's head; 0: none
  MemoryBudget* memory = nullptr;                  // of whole answers; null: they are not counted
};

// Role. The spine: takes a request from its body to the last byte of its answer.
// Confinement. One I/O thread.
// Lifetime. Owned by the thread, outlives its requests.
// Invariants. Every request is answered exactly once, with its answer or with one error, and
//   recorded exactly once.
class Pipeline {
 public:
  Pipeline(fleet::Fleet& fleet, kvcache::KvCacheView& caches, PromptStep& prompts,
           handoff::Handoff& handoff, net::TaskGroup& tasks, net::Deadlines& deadlines,
           RequestLedger& ledger, Options options)
      : fleet_(fleet),
        cache_view_(caches),
        prompts_(prompts),
        handoff_(handoff),
        tasks_(tasks),
        deadlines_(deadlines),
        ledger_(ledger),
        options_(options) {}

  awaitable<void> serve(std::unique_ptr<ClientRequest> incoming, ResponseSink& response,
                        Cancellation& cancellation);

 private:
  // A request whose body was read: its target, and how to deliver the answer.
  struct ParsedRequest {
    handoff::HandoffRequest job;
    engine::IncludeUsage include_usage;
    std::vector<engine::Branch> branches;  // where it is fanned out
    std::size_t choices;                   // of each prompt
    bool continuable;  // another worker could continue the answer if its own fails
    PromptTokens tokens;
    ModelMetrics& metrics;
  };

  // Parses a body that was read, and adds its prompts' token ids if they are known.
  awaitable<Result<std::unique_ptr<ParsedRequest>>> prepare(std::unique_ptr<ClientRequest> incoming,
                                                            RequestRecord& record,
                                                            RequestDeadline& deadline,
                                                            Cancellation& cancellation);
  awaitable<Result<handoff::UpstreamResponse>> hand_off(ParsedRequest& understood,
                                                        RequestRecord& record,
                                                        Cancellation& cancellation);
  static awaitable<Result<void>> deliver(handoff::UpstreamResponse& answer, Delivery& delivery,
                                         ResponseSink& sink, RequestRecord& record,
                                         ModelMetrics& metrics);
  // Reads the body: not on the I/O thread if that is long.
  Result<std::unique_ptr<ParsedRequest>> understand(ClientRequest& incoming,
                                                    std::shared_ptr<const engine::ClientBody> body,
                                                    RequestRecord& record);
  Result<fleet::Fleet::Served> find_model(const wire::JsonObject& body, RequestRecord& record);
  Result<void> check(engine::Api api, const wire::JsonObject& body, RequestRecord& record) const;
  Delivery delivery_for(ParsedRequest& understood) const;
  // A route query, or a request for several choices.
  awaitable<Result<void>> serve_fanout_or_query(std::unique_ptr<ParsedRequest> understood,
                                                ResponseSink& sink, RequestRecord& record,
                                                Cancellation& cancellation);
  awaitable<void> deliver_error(Error& error, ResponseSink& sink, RequestRecord& record);

  fleet::Fleet& fleet_;
  kvcache::KvCacheView& cache_view_;
  PromptStep& prompts_;
  handoff::Handoff& handoff_;
  net::TaskGroup& tasks_;
  net::Deadlines& deadlines_;
  RequestLedger& ledger_;
  Options options_;
};

}  // namespace baton::pipeline
