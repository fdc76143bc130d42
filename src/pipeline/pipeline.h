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
#include <memory>
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
//   recorded exactly once.
class Pipeline {
 public:
  Pipeline(fleet::Fleet& fleet, handoff::Handoff& handoff, RequestLedger& ledger, Options options)
      : fleet_(fleet), handoff_(handoff), ledger_(ledger), options_(options) {}

  awaitable<void> serve(std::unique_ptr<Incoming> incoming, ResponseSink& sink,
                        Cancellation& cancellation);

 private:
  // Where the answer comes from, and what its delivery must know of the request.
  struct Obtained {
    handoff::Answer answer;
    ModelMetrics& metrics;
    engine::IncludeUsage include_usage;
  };
  struct Understood {
    handoff::Job job;
    engine::IncludeUsage include_usage;
  };

  awaitable<Result<Obtained>> obtain(std::unique_ptr<Incoming> incoming, RequestRecord& record,
                                     Cancellation& cancellation);
  Result<Understood> understand(Incoming& incoming, RequestRecord& record);
  // Not a coroutine: while a stream runs, every nested one costs memory.
  awaitable<Result<void>> deliver(engine::Api api, Obtained& obtained, ResponseSink& sink,
                                  RequestRecord& record);
  awaitable<Result<void>> deliver_whole(engine::Api api, Obtained& obtained, ResponseSink& sink,
                                        RequestRecord& record);
  awaitable<void> deliver_error(const Error& error, ResponseSink& sink, RequestRecord& record);

  fleet::Fleet& fleet_;
  handoff::Handoff& handoff_;
  RequestLedger& ledger_;
  Options options_;
};

}  // namespace baton::pipeline
