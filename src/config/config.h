// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/network.h"
#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace baton::config {

struct Tls {
  std::string certificate;  // PEM file with the chain
  std::string key;          // PEM file
  bool operator==(const Tls&) const = default;
};

struct Timeouts {
  std::chrono::milliseconds connect{2'000};         // to a worker
  std::chrono::milliseconds first_byte{300'000};    // request sent → response head
  std::chrono::milliseconds idle{60'000};           // between two reads of an answer
  std::chrono::milliseconds client_header{10'000};  // first byte of a request head → its end
  std::chrono::milliseconds client_body{30'000};    // for a request body, and 1 s per 64 KiB of it
  std::chrono::milliseconds client_idle{75'000};    // keep-alive between requests
  std::chrono::milliseconds handoff_grace{5'000};   // to complete a hand-off whose client has left
  std::chrono::milliseconds client_write{
      60'000};  // a client that takes nothing for this long is gone
  bool operator==(const Timeouts&) const = default;
};

struct Limits {
  std::size_t header_bytes = 64 * 1024;
  std::size_t body_bytes = 64 * 1024 * 1024;
  std::size_t response_bytes = 64 * 1024 * 1024;  // a non-streamed answer, held to be checked
  std::size_t connections = 10'000;               // client connections of the whole process
  std::size_t idle_upstreams = 256;               // kept-alive connections per worker and thread
  bool operator==(const Limits&) const = default;
};

enum class LogFormat { Json, Human };
enum class LogLevel { Debug, Info, Warning, Error };

struct Log {
  LogFormat format = LogFormat::Human;
  LogLevel level = LogLevel::Info;
  bool requests = true;  // one line per request
  bool operator==(const Log&) const = default;
};

// Sessions that stay with their workers.
struct Affinity {
  std::chrono::milliseconds ttl{0};      // after the end of the last use; 0: no affinity
  std::size_t sessions = 100'000;        // remembered at once, for each of the two roles
  std::vector<std::string> body_fields;  // of session_id, user: named there instead of in a header
  bool operator==(const Affinity&) const = default;
};

// What becomes of hand-off fields in a client's body, which could name another request's KV cache.
enum class ClientHandoffFields { Strip, Refuse };

// Whose word counts on which worker serves.
struct Trust {
  bool routing_headers = false;
  std::vector<model::Network> sources;  // none: every source
  bool operator==(const Trust&) const = default;
};

struct Model {
  std::string name;
  std::vector<std::string> aliases;
  model::Policy policy = model::Policy::RoundRobin;
  std::optional<model::Policy> prefill_policy;  // instead of `policy`, for prefill workers
  std::optional<model::Policy> decode_policy;   // instead of `policy`, for decode workers
  model::Disaggregation disaggregation = model::Disaggregation::Auto;
  model::OnPrefillFailure on_prefill_failure = model::OnPrefillFailure::Retry;
  std::size_t retries = 2;    // further attempts before the first token
  std::size_t migration = 0;  // further attempts after it
  Affinity affinity;
  std::vector<model::WorkerSpec> workers;
  bool operator==(const Model&) const = default;
};

struct Config {
  model::Endpoint listen{"127.0.0.1", 8080};
  std::optional<model::Endpoint> admin;
  std::optional<Tls> tls;
  std::vector<std::string>
      api_keys;             // from api_keys and api_keys_file; none: everybody may come in
  std::size_t threads = 0;  // I/O threads; 0: one per core
  std::chrono::milliseconds shutdown_grace{30'000};
  Trust trust;
  ClientHandoffFields client_handoff_fields = ClientHandoffFields::Strip;
  bool response_headers = true;  // x-baton-… on answers
  int overload_status = 0;       // 429 or 503 instead of what the engine said; 0: as it said
  Timeouts timeouts;
  Limits limits;
  Log log;
  std::vector<Model> models;
  bool operator==(const Config&) const = default;
};

}  // namespace baton::config
