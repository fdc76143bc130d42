// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/fleet.h"
#include "handoff/job.h"
#include "pipeline/request_record.h"
#include "pipeline/response_sink.h"

#include <boost/asio/awaitable.hpp>

#include <string>

namespace baton::pipeline {

// Who would serve a request, with every candidate and its score, as JSON. Nothing is booked, nothing
// is sent, nobody's turn is used up.
Result<std::string> describe_route(const handoff::Job& job, const fleet::Random& random);

// The same for a request as a client would send it, asked by somebody whose word counts.
Result<std::string> describe_request(fleet::Fleet& fleet, RequestLedger& ledger,
                                     const wire::Headers& headers, std::string body,
                                     const fleet::Random& random);

// The same as the answer to a client that asked for it instead of for a completion.
awaitable<Result<void>> answer_query(const handoff::Job& job, const fleet::Random& random,
                                     ResponseSink& sink, RequestRecord& record);

}  // namespace baton::pipeline
