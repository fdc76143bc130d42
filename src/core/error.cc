// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "core/error.h"

#include <array>
#include <cstddef>

namespace baton {
namespace {

// clang-format off
constexpr std::array kTable{
    ErrorInfo{Errc::InvalidRequest,     400, "invalid_request_error", "invalid_request",     Fault::Client, false},
    ErrorInfo{Errc::InvalidJson,        400, "invalid_request_error", "invalid_json",        Fault::Client, false},
    ErrorInfo{Errc::Unauthorized,       401, "authentication_error",  "invalid_api_key",     Fault::Client, false},
    ErrorInfo{Errc::ModelNotFound,      404, "invalid_request_error", "model_not_found",     Fault::Client, false},
    ErrorInfo{Errc::NotFound,           404, "invalid_request_error", "not_found",           Fault::Client, false},
    ErrorInfo{Errc::MethodNotAllowed,   405, "invalid_request_error", "method_not_allowed",  Fault::Client, false},
    ErrorInfo{Errc::RequestTimeout,     408, "invalid_request_error", "request_timeout",     Fault::Client, false},
    ErrorInfo{Errc::PayloadTooLarge,    413, "invalid_request_error", "payload_too_large",   Fault::Client, false},
    ErrorInfo{Errc::HeadersTooLarge,    431, "invalid_request_error", "headers_too_large",   Fault::Client, false},
    ErrorInfo{Errc::ExpectationFailed,  417, "invalid_request_error", "expectation_failed",  Fault::Client, false},
    ErrorInfo{Errc::InvalidRouting,     400, "invalid_request_error", "invalid_routing",     Fault::Client, false},
    ErrorInfo{Errc::EngineRejected,     400, "invalid_request_error", "engine_rejected",     Fault::Client, false},
    ErrorInfo{Errc::EngineOverloaded,   503, "overloaded_error",      "engine_overloaded",   Fault::Engine, true},
    ErrorInfo{Errc::EngineFailed,       502, "server_error",          "engine_failed",       Fault::Engine, true},
    ErrorInfo{Errc::EngineUnreachable,  502, "server_error",          "engine_unreachable",  Fault::Engine, true},
    ErrorInfo{Errc::EngineTimeout,      504, "server_error",          "engine_timeout",      Fault::Engine, true},
    ErrorInfo{Errc::EngineProtocol,     502, "server_error",          "engine_protocol",     Fault::Engine, true},
    ErrorInfo{Errc::StreamBroken,       502, "server_error",          "stream_broken",       Fault::Engine, true},
    ErrorInfo{Errc::NoHandoff,          502, "server_error",          "no_handoff",          Fault::Engine, true},
    ErrorInfo{Errc::NoWorkers,          503, "overloaded_error",      "no_workers",          Fault::Engine, true},
    ErrorInfo{Errc::PrefillUnavailable, 503, "overloaded_error",      "prefill_unavailable", Fault::Engine, true},
    ErrorInfo{Errc::NoEligibleWorker,   503, "overloaded_error",      "no_eligible_worker",  Fault::Engine, true},
    ErrorInfo{Errc::TooManyConnections, 503, "overloaded_error",      "too_many_connections",Fault::Us,     false},
    ErrorInfo{Errc::ShuttingDown,       503, "overloaded_error",      "shutting_down",       Fault::Us,     false},
    ErrorInfo{Errc::ClientGone,         499, "client_error",          "client_gone",         Fault::Client, false},
    ErrorInfo{Errc::Internal,           500, "server_error",          "internal",            Fault::Us,     false},
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
