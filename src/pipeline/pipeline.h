// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "engine/dialect.h"
#include "fleet/fleet.h"
#include "handoff/handoff.h"
#include "pipeline/forwarding.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"
#include "wire/http_message.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace baton::pipeline {

// A request as the front hands it in.
struct Incoming {
  engine::Api api;
  wire::Headers headers;
  std::string body;
  std::string request_id;
  std::chrono::steady_clock::time_point received;
};

struct Options {
  ForwardAuthorization forward_authorization;
  std::size_t response_bytes;
};

// Role. The spine: takes a request from its body to the last byte of its answer.
// Confinement. One I/O thread.
// Lifetime. Owned by the thread, outlives its requests.
// Invariants. Every request is answered exactly once, with its answer or with one error, and
// recorded exactly once.
class Pipeline {
 public:
  Pipeline(fleet::Fleet& fleet, handoff::Handoff& handoff, RequestLedger& ledger, Options options)
      : fleet_(fleet), handoff_(handoff), ledger_(ledger), options_(options) {}

  awaitable<void> serve(Incoming incoming, ResponseSink& sink, Cancellation& cancellation);

 private:
  struct Understood {
    handoff::Job job;
    engine::IncludeUsage include_usage;
  };
  Result<Understood> understand(Incoming incoming, RequestRecord& record);
  awaitable<Result<void>> answer(Incoming incoming, ResponseSink& sink, RequestRecord& record,
                                 Cancellation& cancellation);
  awaitable<Result<void>> deliver_whole(const std::string& json, engine::Api api,
                                        engine::IncludeUsage include_usage, ResponseSink& sink,
                                        RequestRecord& record, ModelMetrics& metrics);
  awaitable<void> deliver_error(const Error& error, ResponseSink& sink, RequestRecord& record);

  fleet::Fleet& fleet_;
  handoff::Handoff& handoff_;
  RequestLedger& ledger_;
  Options options_;
};

}  // namespace baton::pipeline
