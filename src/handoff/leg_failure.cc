// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/leg_failure.h"

#include <system_error>
#include <utility>

namespace baton::handoff {

Error leg_given_up() { return Error(Errc::EngineFailed, "the leg was given up"); }

Failure failure_of(const Error& error) {
  return {.retryable = error.info().retryable,
          .untouched = error.code() == Errc::EngineUnreachable ||
                       error.code() == Errc::EngineOverloaded ||
                       error.code() == Errc::OutOfResources};
}

FailedPart failed_part(const Error& error, bool awaits_cache) {
  if (error.code() == Errc::EngineFailed && awaits_cache) return FailedPart::Pair;
  const bool own = error.code() == Errc::OutOfResources || error.code() == Errc::MemoryExhausted;
  return own ? FailedPart::None : FailedPart::Worker;
}

engine::DecodeEnd decode_end(const http_client::Exchange& exchange, const fleet::Worker& worker,
                             const Error& error, std::string error_type) {
  using How = engine::DecodeEnd::How;
  engine::DecodeEnd end{
      .how = How::Broken, .error_type = std::move(error_type), .version = worker.version()};
  // A kept connection may have died of this request; one that ended in a refusal has not.
  const bool untouched = error.code() == Errc::EngineOverloaded ||
                         (failure_of(error).untouched && !exchange.replayed());
  if (exchange.dropped() || error.code() == Errc::EngineTimeout) {
    end.how = exchange.sent_whole() ? How::Closed : How::Unsent;
  } else if (untouched) {
    end.how = How::Unsent;
  } else if (error.code() == Errc::EngineRejected || error.code() == Errc::EngineUnauthorized) {
    end.how = How::Refused;
  }
  return end;
}

void count_failure(fleet::Worker& worker, const Error& error) {
  switch (error.code()) {
    case Errc::EngineUnreachable:
      return worker.failed(error.cause() == std::errc::connection_refused
                               ? fleet::Failure::Refused
                               : fleet::Failure::Unreachable,
                           error.message());
    case Errc::EngineOverloaded:
      return worker.pushed_back(*error.retry_after());
    case Errc::EngineFailed:
    case Errc::EngineTimeout:
    case Errc::EngineProtocol:
    case Errc::StreamBroken:
    case Errc::NoHandoff:
      return worker.failed(fleet::Failure::Broken, error.message());
    default:  // not the worker's fault
      return;
  }
}

void log_failure(telemetry::Logger* log, const HandoffRequest& request, std::string_view leg,
                 const fleet::Worker& worker, const Error& error) {
  if (!log || error.info().fault != Fault::Engine) return;
  log->warning("leg_failed", {{"id", request.request_id},
                              {"model", request.model->name()},
                              {"leg", leg},
                              {"worker", worker.name()},
                              {"code", error.info().label},
                              {"error", error.message()}});
}

}  // namespace baton::handoff
