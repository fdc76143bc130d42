// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/routing.h"
#include "model/network.h"
#include "model/tokens.h"
#include "model/trtllm_auth.h"
#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::config {

// With forward secrecy and authenticated encryption.
inline constexpr std::string_view kModernCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct Tls {
  std::string certificate;              // PEM file with the chain
  std::string key;                      // PEM file
  std::string ciphers{kModernCiphers};  // of TLS 1.2, in OpenSSL's words
  bool operator==(const Tls&) const = default;
};

struct Timeouts {
  std::chrono::milliseconds connect{2'000};         // to a worker
  std::chrono::milliseconds first_byte{300'000};    // request sent → first token
  std::chrono::milliseconds idle{60'000};           // from one token to the next
  std::chrono::milliseconds request{0};             // of a client, in all; 0: as long as it takes
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
  // Memory for all bodies and whole answers; 0: no limit; absent: half of the process's limit.
  std::optional<std::size_t> memory;
  std::size_t token_cache_bytes = 64 * 1024 * 1024;  // of tokens remembered, for each model
  bool operator==(const Limits&) const = default;
};

// Limits for each client of the listener, identified by its API key or else by its address. 0: no
// limit.
struct ClientLimits {
  std::size_t connections = 0;  // by address only: the key comes later
  std::size_t requests = 0;     // at a time
  double rate = 0;              // requests a second
  std::size_t burst = 0;        // of them at once; 0: as many as come in a second
  bool any() const { return connections > 0 || requests > 0 || rate > 0; }
  bool operator==(const ClientLimits&) const = default;
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

// Treatment of hand-off fields in a client's body, which could name another request's KV cache.
enum class ClientHandoffFields { Strip, Refuse };

// The sources whose routing headers are obeyed.
struct Trust {
  bool routing_headers = false;
  std::vector<model::Network> sources;  // none: every source
  bool operator==(const Trust&) const = default;
};

struct EtcdServer {
  model::Endpoint endpoint;
  bool tls = false;  // https
  bool operator==(const EtcdServer&) const = default;
};

// The etcd cluster in which workers announce themselves under a lease.
struct Etcd {
  std::vector<EtcdServer> endpoints;  // never empty
  std::string prefix = "/baton/workers/";
  std::string user;  // empty: no login
  std::string password;
  std::string ca;           // PEM file; empty: the authorities of the system
  std::string certificate;  // PEM file with the chain of the client; empty: none
  std::string key;          // PEM file
  std::chrono::milliseconds timeout{5'000};
  std::chrono::milliseconds linger{15'000};  // a worker without lease, as long as it answers
  bool operator==(const Etcd&) const = default;
};

// Health checks of workers.
struct Health {
  std::chrono::milliseconds interval{10'000};  // between two questions to a worker without requests
  std::chrono::milliseconds timeout{20'000};   // for its answer
  std::size_t failures = 3;                    // of requests, in a row, before it is ejected
  std::chrono::milliseconds backoff{1'000};    // before the first trial; doubles with each
  std::chrono::milliseconds backoff_max{30'000};
  bool operator==(const Health&) const = default;
};

// A tiny real request to a worker that has had no success for a while.
struct Canary {
  std::chrono::milliseconds idle{0};  // without success; 0: no canary
  std::chrono::milliseconds timeout{3'000};
  std::size_t failures = 3;  // in a row, before the worker is ejected
  bool operator==(const Canary&) const = default;
};

// Checks of a worker before it serves.
struct Probe {
  bool enabled = true;
  bool self_test = false;  // one tiny hand-off
  bool operator==(const Probe&) const = default;
};

// Source of the knowledge about workers' KV caches.
enum class IndexSource {
  Auto,       // events where they come, else decisions
  Events,     // what engines say
  Decisions,  // where requests were sent
  Off,
};

struct KvIndex {
  IndexSource source = IndexSource::Auto;
  std::size_t blocks = 16'000'000;  // remembered at once
  // Without events: assumed lifetime of a prompt in a worker's cache after it was sent there.
  std::chrono::milliseconds decision_ttl{120'000};
  // With events: how long a sent prompt counts as about to be stored; 0: not at all.
  std::chrono::milliseconds prediction_ttl{5'000};
  // How long a worker's feed may bring nothing although requests ended there.
  std::chrono::milliseconds silence{30'000};
  std::string snapshot;  // file that keeps the index; empty: none
  std::chrono::milliseconds snapshot_interval{60'000};
  bool operator==(const KvIndex&) const = default;
};

// How a model's prompts become token ids.
struct Tokens {
  model::Tokenize by =
      model::Tokenize::Off;   // Local where there is a tokenizer, if nothing is said
  std::string tokenizer;      // folder with the model's tokenizer files
  std::string chat_template;  // file, instead of the folder's own template
  model::SendTokenIds send = model::SendTokenIds::Auto;
  bool operator==(const Tokens&) const = default;
};

struct Model {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<std::string> adapters;  // that any of its workers loads when it is asked for them
  model::Policy policy = model::Policy::Ttft;
  std::optional<model::Policy> prefill_policy;  // instead of `policy`, for prefill workers
  std::optional<model::Policy> decode_policy;   // instead of `policy`, for decode workers
  model::Disaggregation disaggregation = model::Disaggregation::Auto;
  model::OnPrefillFailure on_prefill_failure = model::OnPrefillFailure::Retry;
  std::size_t retries = 2;    // further attempts before the first token
  std::size_t migration = 0;  // further attempts after it
  Affinity affinity;
  Tokens tokens;
  Routing routing;
  std::vector<model::WorkerSpec> workers;
  bool operator==(const Model&) const = default;
};

struct Config {
  model::Endpoint listen{"127.0.0.1", 8080};
  std::optional<model::Endpoint> admin;
  std::optional<Tls> tls;
  std::vector<std::string>
      api_keys;  // from api_keys and api_keys_file; none: every client is admitted
  // From admin_keys and admin_keys_file; none: workers are shown and changed from loopback only.
  std::vector<std::string> admin_keys;
  std::size_t threads = 0;      // I/O threads; 0: one per core
  std::size_t cpu_threads = 0;  // for templates and tokenizing; 0: one for two cores
  std::chrono::milliseconds shutdown_grace{30'000};
  std::chrono::milliseconds restart_timeout{60'000};
  Trust trust;
  ClientHandoffFields client_handoff_fields = ClientHandoffFields::Strip;
  std::vector<std::string> strip_client_fields;   // members of bodies that no worker gets
  std::vector<std::string> strip_client_headers;  // lower case; NAME* is a beginning
  model::TrtllmAuth trtllm_auth;
  bool response_headers = true;   // x-baton-… on answers
  std::size_t decisions = 1'000;  // number of requests whose routing decision is kept
  int overload_status = 0;        // 429 or 503 instead of the engine's status; 0: unchanged
  Timeouts timeouts;
  Limits limits;
  ClientLimits client_limits;
  Log log;
  std::optional<Etcd> etcd;
  Health health;
  Canary canary;
  Probe probe;
  KvIndex kv_index;
  std::vector<Model> models;  // none: they come with their workers
  bool operator==(const Config&) const = default;
};

}  // namespace baton::config
