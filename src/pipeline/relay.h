// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/cancellation.h"
#include "core/result.h"
#include "handoff/handoff.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"

#include <boost/asio/awaitable.hpp>

#include <cstddef>

namespace baton::pipeline {

// Brings a worker's answer to the client. Both return what went wrong, if anything did;
// record.status says whether the client has seen a response head by then.
//
// A stream goes on event by event, byte for byte, each as soon as it is whole; the next is read
// when the client has taken the one before. It is a success only if every event was sound, some
// choice finished and [DONE] came.
awaitable<Result<void>> relay_stream(handoff::Answer& answer, ResponseSink& sink,
                                     RequestRecord& record, ModelMetrics& metrics);

// A whole answer is held until it is complete and known to be JSON, so a cut one never looks like a
// success.
awaitable<Result<void>> relay_whole(handoff::Answer& answer, std::size_t limit, ResponseSink& sink,
                                    RequestRecord& record, ModelMetrics& metrics);

}  // namespace baton::pipeline
