// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/error.h"

#include <array>
#include <cstddef>

namespace baton {
namespace {

// clang-format off
constexpr std::array kTable{
    ErrorInfo{Errc::InvalidRequest, 400, "invalid_request_error", "invalid_request", Fault::Client, false,
              "The HTTP is malformed or ambiguous, or the body lacks `model`, `messages` or `prompt`, or has a "
              "`stream` that is no boolean, an `n` or a list of prompts that makes no sense, token ids that are no integers "
              "below 2³¹ or beyond the model's vocabulary as far as its files or workers tell its size, or, under "
              "`client_handoff_fields: refuse`, a field that only Baton may set. All other fields are the "
              "engine's to judge."},
    ErrorInfo{Errc::InvalidJson, 400, "invalid_request_error", "invalid_json", Fault::Client, false,
              "The request body is not one valid JSON object."},
    ErrorInfo{Errc::Unauthorized, 401, "authentication_error", "invalid_api_key", Fault::Client, false,
              "The API key is missing or is not one of the configured ones."},
    ErrorInfo{Errc::Forbidden, 403, "permission_error", "forbidden", Fault::Client, false,
              "A call of the admin address that shows or changes workers came from another machine or from a web "
              "page, and no `admin_keys` are configured that could tell who may do that."},
    ErrorInfo{Errc::ModelNotFound, 404, "invalid_request_error", "model_not_found", Fault::Client, false,
              "No model, be it configured or brought by its workers, has the name or alias asked for."},
    ErrorInfo{Errc::NotFound, 404, "invalid_request_error", "not_found", Fault::Client, false,
              "There is no such path, or, on the admin address, no such worker."},
    ErrorInfo{Errc::MethodNotAllowed, 405, "invalid_request_error", "method_not_allowed", Fault::Client, false,
              "The path exists, but not for this method; `Allow` names those it takes."},
    ErrorInfo{Errc::RequestTimeout, 408, "invalid_request_error", "request_timeout", Fault::Client, false,
              "The request head or body came too slowly (`timeouts.client_header`, `timeouts.client_body`)."},
    ErrorInfo{Errc::Conflict, 409, "invalid_request_error", "conflict", Fault::Client, false,
              "The worker cannot be changed on the admin address: it is announced elsewhere, it is leaving, or another "
              "one has its name. The message says where and what to do."},
    ErrorInfo{Errc::PayloadTooLarge, 413, "invalid_request_error", "payload_too_large", Fault::Client, false,
              "The request body is larger than `limits.body_bytes`, or than a fifth of `limits.memory`."},
    ErrorInfo{Errc::HeadersTooLarge, 431, "invalid_request_error", "headers_too_large", Fault::Client, false,
              "The request head is larger than `limits.header_bytes`, or has more than 512 fields."},
    ErrorInfo{Errc::ExpectationFailed, 417, "invalid_request_error", "expectation_failed", Fault::Client, false,
              "The request expects something other than `100-continue`."},
    ErrorInfo{Errc::InvalidRouting, 400, "invalid_request_error", "invalid_routing", Fault::Client, false,
              "The request names its workers wrongly: an unknown worker, a rank that is missing "
              "or does not exist, a worker that it does not allow itself or that lacks a taint it requires, a "
              "pin that contradicts its session, two headers that contradict each other, or no worker named "
              "although the policy is `direct`. The message names the header or field."},
    ErrorInfo{Errc::EngineRejected, 400, "invalid_request_error", "engine_rejected", Fault::Client, false,
              "The engine refused the request as wrong. The client gets its 4xx status, its content type and its "
              "body, byte for byte; this shape only where the engine said nothing or more than 1 MiB, or the answer has begun. "
              "Other 4xx are not the client's: see `engine_unauthorized`, `engine_overloaded`, `engine_failed`."},
    ErrorInfo{Errc::EngineUnauthorized, 502, "server_error", "engine_unauthorized", Fault::Engine, true,
              "The engine refused the key it was given (401, 403, 407): Baton's client sent a wrong one, or the "
              "engine wants one and gets none."},
    ErrorInfo{Errc::EngineOverloaded, 503, "overloaded_error", "engine_overloaded", Fault::Engine, true,
              "The engine answered 429 or 503, which is passed on with its message unless `overload_status` "
              "says otherwise; `Retry-After` is the engine's, or one second."},
    ErrorInfo{Errc::EngineFailed, 502, "server_error", "engine_failed", Fault::Engine, true,
              "The engine answered with a 5xx or a status that tells of its connection to Baton (405, 408, 409, "
              "411, 415, 417, 421, 425, 426) or makes no sense here, closed the connection before it "
              "answered, or ended a stream with an error or without finishing it."},
    ErrorInfo{Errc::EngineUnreachable, 502, "server_error", "engine_unreachable", Fault::Engine, true,
              "No connection could be made to a worker within `timeouts.connect`, and there was no other one "
              "to try; the message names it."},
    ErrorInfo{Errc::EngineTimeout, 504, "server_error", "engine_timeout", Fault::Engine, true,
              "The engine had no token, or no answer that is not streamed, within `timeouts.first_byte`, or did not go on "
              "within `timeouts.idle`."},
    ErrorInfo{Errc::EngineProtocol, 502, "server_error", "engine_protocol", Fault::Engine, true,
              "The engine sent something that is not the HTTP or JSON of its dialect, or an answer larger than "
              "`limits.response_bytes`."},
    ErrorInfo{Errc::StreamBroken, 502, "server_error", "stream_broken", Fault::Engine, true,
              "The engine's answer ended or the connection broke before it was complete."},
    ErrorInfo{Errc::PoisonRequest, 502, "server_error", "poison_request", Fault::Engine, false,
              "Two workers' processes ended while they served this request, or copies of it, before the first token: "
              "it is offered to no other one for two minutes. `X-Should-Retry: false` tells OpenAI's clients not to "
              "repeat it by themselves."},
    ErrorInfo{Errc::NoHandoff, 502, "server_error", "no_handoff", Fault::Engine, true,
              "A prefill worker answered without what a decode worker needs to fetch the KV cache, or neither "
              "it nor the configuration says how decode workers find it."},
    ErrorInfo{Errc::NoWorkers, 503, "overloaded_error", "no_workers", Fault::Engine, true,
              "No worker of the role is there: all of them are down. `Retry-After` is one second. "
              "A worker that failed the request is told of by its own error instead."},
    ErrorInfo{Errc::PrefillUnavailable, 503, "overloaded_error", "prefill_unavailable", Fault::Engine, true,
              "The model has `disaggregation: required`, and none of its prefill workers is active; "
              "`Retry-After` is one second."},
    ErrorInfo{Errc::NoEligibleWorker, 503, "overloaded_error", "no_eligible_worker", Fault::Engine, true,
              "There are workers, but none that this request may go to now: the one it names is down, or none "
              "is on its allow list, has its required taints, hands off in the prefill worker's mode or is in "
              "its transfer domain. `Retry-After` is one second."},
    ErrorInfo{Errc::QueueFull, 429, "overloaded_error", "queue_full", Fault::Client, false,
              "Every worker for this request is busy, and it would have crossed a limit on what may wait in its "
              "class (`queue.classes`), or have had to wait too long (`queue.longest_wait`). `error.details` has "
              "the `policy_class`, the `limit_kind` (`requests`, `raw_isl_tokens`, `cached_tokens` or `wait_ms`), "
              "what waits (`current`; for `wait_ms` how long it would have waited) and the `limit`; `Retry-After` "
              "is how long the queue will take, from 1 to 60 seconds."},
    ErrorInfo{Errc::QueueTimeout, 503, "overloaded_error", "queue_timeout", Fault::Us, false,
              "No worker had time before the request's patience was over (`x-baton-queue` or "
              "`queue.patience`); `Retry-After` as above."},
    ErrorInfo{Errc::SloUnattainable, 503, "overloaded_error", "slo_unattainable", Fault::Us, false,
              "Every worker for this request is busy, and its first token would come later than the objective `slo.ttft` "
              "of its model or class allows (`slo.when_late: queue` lets it wait instead). `error.details` has the "
              "`policy_class`, the `limit_kind` `slo_ttft_ms`, when the first token would have come (`current`) and "
              "the objective (`limit`); `Retry-After` as above."},
    ErrorInfo{Errc::DeadlineExceeded, 504, "server_error", "deadline_exceeded", Fault::Us, false,
              "The request's time was over, `timeouts.request` or its own `X-Request-Timeout-Ms`, before its answer was "
              "complete. No worker is blamed; the connection is closed."},
    ErrorInfo{Errc::WorkersBusy, 503, "overloaded_error", "workers_busy", Fault::Us, false,
              "Every worker for this request is busy, and it may not wait: it said `fail-fast`, or no request of its "
              "class waits. `Retry-After` as above."},
    ErrorInfo{Errc::TooManyConnections, 503, "overloaded_error", "too_many_connections", Fault::Us, false,
              "There are already `limits.connections` client connections; `Retry-After` is one second."},
    ErrorInfo{Errc::OutOfResources, 503, "overloaded_error", "out_of_resources", Fault::Us, false,
              "Baton or its machine has no descriptor, local port or memory of the kernel for a connection to a worker: "
              "raise `ulimit -n`, or lower `limits.connections`. No worker is blamed; `Retry-After` is one second."},
    ErrorInfo{Errc::MemoryExhausted, 503, "overloaded_error", "memory_exhausted", Fault::Us, false,
              "The bodies and whole answers that Baton holds have no room for more within `limits.memory`: for this body, "
              "for what has to be made of it, or for the answer of its worker. Requests of up to 64 KiB and streams are "
              "served all the same. No worker is blamed; `Retry-After` is one second."},
    ErrorInfo{Errc::RateLimited, 429, "rate_limit_error", "rate_limited", Fault::Client, false,
              "The client, by its API key or else its address, has as many connections or requests as it "
              "may have, or sends more of them a second (`limits.client_connections`, "
              "`limits.client_requests`, `limits.client_rate`). `error.details` has the `limit_kind` "
              "(`client_connections`, `client_requests` or `client_rate`), the `limit`, and how many there "
              "are (`current`) or when there is room again (`wait_ms`); `Retry-After` is one second or that "
              "time."},
    ErrorInfo{Errc::ShuttingDown, 503, "overloaded_error", "shutting_down", Fault::Us, false,
              "The request still ran when `shutdown_grace` was over, or had not arrived whole a second "
              "after the router was told to end; then `Retry-After` is one second. New connections are "
              "refused by then, not answered."},
    ErrorInfo{Errc::ClientGone, 499, "client_error", "client_gone", Fault::Client, false,
              "The client left before its answer was complete, or took too little of it for too long "
              "(`timeouts.client_write`); no client sees this status, it is for logs and metrics."},
    ErrorInfo{Errc::Internal, 500, "server_error", "internal", Fault::Us, false,
              "A mistake in Baton; please report it with the request id."},
};
// clang-format on

consteval bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].code != static_cast<Errc>(i)) return false;
  }
  return kTable.size() == static_cast<std::size_t>(Errc::Internal) + 1;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::span<const ErrorInfo> error_table() { return kTable; }

const ErrorInfo& describe(Errc code) { return kTable[static_cast<std::size_t>(code)]; }

}  // namespace baton
