// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "engine/shared/dialect.h"
#include "fleet/worker.h"
#include "handoff/request.h"
#include "handoff/state_machine.h"
#include "http_client/exchange.h"
#include "telemetry/log.h"

#include <cstdint>
#include <string>
#include <string_view>

// The meaning of a leg's error: for the state machine, for the health of its worker, and for the
// choice of the next workers.
namespace baton::handoff {

// The workers that later attempts of the request pass over.
enum class FailedPart : std::uint8_t {
  None,    // this process lacked something
  Worker,  // that of the leg
  Pair,    // of a decode leg: that, or the prefill worker whose cache did not arrive
};

// Why a leg ends that Baton has closed.
Error leg_given_up();

Failure failure_of(const Error& error);
// `awaits_cache`: of a decode leg that a prefill worker has not given the cache yet.
FailedPart failed_part(const Error& error, bool awaits_cache);
// How a decode leg ended that brought no answer.
engine::DecodeEnd decode_end(const http_client::Exchange& exchange, const fleet::Worker& worker,
                             const Error& error, std::string error_type);

// For the worker's health.
void count_failure(fleet::Worker& worker, const Error& error);
void log_failure(telemetry::Logger* log, const HandoffRequest& request, std::string_view leg,
                 const fleet::Worker& worker, const Error& error);

}  // namespace baton::handoff
