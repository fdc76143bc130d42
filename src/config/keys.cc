// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Every key there is. What may stand in a file, what --help says and what the document must say
// comes from here.
#include "config/load.h"

#include <array>

namespace baton::config {
namespace {

constexpr std::string_view kPolicies = "one of round_robin, random, power_of_two, least_loaded";

// clang-format off
constexpr std::array kKeys{
    Key{"listen", "--listen", "address", "127.0.0.1:8080", "Where clients connect; port 0 picks a free one."},
    Key{"admin", "--admin", "address", "none", "Where health, readiness and metrics are served; off when absent."},
    Key{"tls.certificate", "--tls.certificate", "string", "none", "PEM file with the certificate chain of the client listener; needs tls.key."},
    Key{"tls.key", "--tls.key", "string", "none", "PEM file with the private key of that certificate; needs tls.certificate."},
    Key{"api_keys", "", "list", "none", "Keys clients may send as bearer token; without any, everybody may come in."},
    Key{"api_keys_file", "--api-keys-file", "string", "none", "File with more API keys, one a line; blank lines and lines that begin with # are left out."},
    Key{"threads", "--threads", "integer", "0", "I/O threads; 0 means one per core."},
    Key{"shutdown_grace", "--shutdown-grace", "duration", "30s", "How long running requests may finish after SIGTERM."},
    Key{"timeouts.connect", "--timeouts.connect", "duration", "2s", "Connecting to a worker."},
    Key{"timeouts.first_byte", "--timeouts.first-byte", "duration", "5m", "From the request sent to a worker to its first token, or to its whole answer where it is not streamed."},
    Key{"timeouts.idle", "--timeouts.idle", "duration", "1m", "Between two reads of a worker's answer."},
    Key{"timeouts.client_header", "--timeouts.client-header", "duration", "10s", "From the first byte of a client's request head to its end."},
    Key{"timeouts.client_body", "--timeouts.client-body", "duration", "30s", "Time for a client's request body to arrive, plus one second for each 64 KiB of it."},
    Key{"timeouts.client_idle", "--timeouts.client-idle", "duration", "75s", "How long a client's connection is kept between two requests."},
    Key{"timeouts.handoff_grace", "--timeouts.handoff-grace", "duration", "5s", "How long a hand-off under way may still take after its client has left, so that no KV block stays pinned."},
    Key{"timeouts.client_write", "--timeouts.client-write", "duration", "1m", "A client that takes nothing of its answer for this long is given up."},
    Key{"limits.header_bytes", "--limits.header-bytes", "size", "64KiB", "Largest head of a request or an answer."},
    Key{"limits.body_bytes", "--limits.body-bytes", "size", "64MiB", "Largest request body; a larger one is answered with 413."},
    Key{"limits.response_bytes", "--limits.response-bytes", "size", "64MiB", "Largest answer of a worker that is not streamed."},
    Key{"limits.connections", "--limits.connections", "integer", "10000", "Client connections of the whole process."},
    Key{"limits.idle_upstreams", "--limits.idle-upstreams", "integer", "256", "Kept-alive connections per worker and thread; 0 keeps none."},
    Key{"log.format", "--log.format", "one of json, human", "human", "Log lines for machines or for people."},
    Key{"log.level", "--log.level", "one of debug, info, warning, error", "info", "The least important lines that are still written."},
    Key{"log.requests", "--log.requests", "boolean", "true", "Whether each request gets a line at its end."},
    Key{"models", "", "list", "required", "The models served; --worker adds to them."},
    Key{"models[].name", "", "string", "required", "What clients put in \"model\"."},
    Key{"models[].aliases", "", "list", "none", "Further names for the same model."},
    Key{"models[].policy", "", kPolicies, "round_robin", "How a worker is chosen for a request."},
    Key{"models[].prefill_policy", "", kPolicies, "policy", "How a prefill worker is chosen, where that differs."},
    Key{"models[].decode_policy", "", kPolicies, "policy", "How a decode worker is chosen, where that differs."},
    Key{"models[].workers", "", "list", "required", "The engine servers of the model."},
    Key{"models[].workers[].url", "", "string", "required", "Where the engine server listens: http://host:port."},
    Key{"models[].workers[].engine", "", "one of vllm, sglang, trtllm", "vllm", "Which engine it runs."},
    Key{"models[].workers[].role", "", "one of prefill, decode, aggregated", "aggregated", "Which part of a request it takes; aggregated takes both."},
    Key{"models[].workers[].bootstrap_port", "", "integer", "asked of the engine", "Port at which decode workers meet an SGLang prefill worker."},
};
// clang-format on

}  // namespace

std::span<const Key> keys() { return kKeys; }

}  // namespace baton::config
