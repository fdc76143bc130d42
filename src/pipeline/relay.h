// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/stream_continuity.h"
#include "handoff/upstream_response.h"
#include "net/cpu_pool.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>

namespace baton::pipeline {

// How an answer is to be brought to its client.
struct Delivery {
  engine::Api api;
  engine::IncludeUsage include_usage;
  std::size_t response_bytes;   // the most that is held of a whole answer
  bool tell_workers;            // x-baton-… headers
  net::CpuPool& cpu;            // where long answers are read
  bool input_logprobs = false;  // the client wants those of its prompt
  // If another worker may continue the stream.
  std::unique_ptr<engine::StreamContinuity> continuity;
};

// Brings the answer to the client, from however many workers it takes. Returns the error, if any;
// record.status says whether the client has seen a response head by then.
//
// A stream goes on event by event, each as soon as it is whole; the next is read when the client
// has taken the one before. It is a success only if every event was sound, some choice finished and
// [DONE] came. A whole answer is held until it is complete and known to be JSON, so a cut one never
// looks like a success. `delivery.cpu` does the work on long texts, whole answers or events.
awaitable<Result<void>> relay(handoff::UpstreamResponse& answer, Delivery delivery,
                              ResponseSink& sink, RequestRecord& record, ModelMetrics& metrics);

}  // namespace baton::pipeline
