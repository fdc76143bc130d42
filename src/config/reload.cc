// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/reload.h"

#include <array>
#include <string_view>

namespace baton::config {
namespace {

struct Setting {
  std::string_view path;
  bool (*same)(const Config&, const Config&);
};

template <auto kGet>
bool same(const Config& a, const Config& b) {
  return kGet(a) == kGet(b);
}

Tls tls(const Config& config) { return config.tls.value_or(Tls{}); }
Etcd etcd(const Config& config) { return config.etcd.value_or(Etcd{}); }

// clang-format off
constexpr std::array kSettings{
    Setting{"listen", same<[](const Config& c) { return c.listen; }>},
    Setting{"admin", same<[](const Config& c) { return c.admin; }>},
    Setting{"tls.certificate", same<[](const Config& c) { return tls(c).certificate; }>},
    Setting{"tls.key", same<[](const Config& c) { return tls(c).key; }>},
    Setting{"tls.ciphers", same<[](const Config& c) { return tls(c).ciphers; }>},
    Setting{"api_keys", same<[](const Config& c) { return c.api_keys; }>},
    Setting{"admin_keys", same<[](const Config& c) { return c.admin_keys; }>},
    Setting{"threads", same<[](const Config& c) { return c.threads; }>},
    Setting{"decisions", same<[](const Config& c) { return c.decisions; }>},
    Setting{"cpu_threads", same<[](const Config& c) { return c.cpu_threads; }>},
    Setting{"shutdown_grace", same<[](const Config& c) { return c.shutdown_grace; }>},
    Setting{"restart_timeout", same<[](const Config& c) { return c.restart_timeout; }>},
    Setting{"trust_routing_headers", same<[](const Config& c) { return c.trust.routing_headers; }>},
    Setting{"trusted_sources", same<[](const Config& c) { return c.trust.sources; }>},
    Setting{"client_handoff_fields", same<[](const Config& c) { return c.client_handoff_fields; }>},
    Setting{"strip_client_fields", same<[](const Config& c) { return c.strip_client_fields; }>},
    Setting{"strip_client_headers", same<[](const Config& c) { return c.strip_client_headers; }>},
    Setting{"response_headers", same<[](const Config& c) { return c.response_headers; }>},
    Setting{"overload_status", same<[](const Config& c) { return c.overload_status; }>},
    Setting{"timeouts.connect", same<[](const Config& c) { return c.timeouts.connect; }>},
    Setting{"timeouts.first_byte", same<[](const Config& c) { return c.timeouts.first_byte; }>},
    Setting{"timeouts.idle", same<[](const Config& c) { return c.timeouts.idle; }>},
    Setting{"timeouts.request", same<[](const Config& c) { return c.timeouts.request; }>},
    Setting{"timeouts.client_header", same<[](const Config& c) { return c.timeouts.client_header; }>},
    Setting{"timeouts.client_body", same<[](const Config& c) { return c.timeouts.client_body; }>},
    Setting{"timeouts.client_idle", same<[](const Config& c) { return c.timeouts.client_idle; }>},
    Setting{"timeouts.handoff_grace", same<[](const Config& c) { return c.timeouts.handoff_grace; }>},
    Setting{"timeouts.client_write", same<[](const Config& c) { return c.timeouts.client_write; }>},
    Setting{"limits.header_bytes", same<[](const Config& c) { return c.limits.header_bytes; }>},
    Setting{"limits.body_bytes", same<[](const Config& c) { return c.limits.body_bytes; }>},
    Setting{"limits.response_bytes", same<[](const Config& c) { return c.limits.response_bytes; }>},
    Setting{"limits.memory", same<[](const Config& c) { return c.limits.memory; }>},
    Setting{"limits.connections", same<[](const Config& c) { return c.limits.connections; }>},
    Setting{"limits.client_connections", same<[](const Config& c) { return c.client_limits.connections; }>},
    Setting{"limits.client_requests", same<[](const Config& c) { return c.client_limits.requests; }>},
    Setting{"limits.client_rate", same<[](const Config& c) { return c.client_limits.rate; }>},
    Setting{"limits.client_burst", same<[](const Config& c) { return c.client_limits.burst; }>},
    Setting{"limits.idle_upstreams", same<[](const Config& c) { return c.limits.idle_upstreams; }>},
    Setting{"limits.token_cache_bytes", same<[](const Config& c) { return c.limits.token_cache_bytes; }>},
    Setting{"log.format", same<[](const Config& c) { return c.log.format; }>},
    Setting{"log.level", same<[](const Config& c) { return c.log.level; }>},
    Setting{"log.requests", same<[](const Config& c) { return c.log.requests; }>},
    Setting{"trtllm.auth_key_file", same<[](const Config& c) { return c.trtllm_auth.key; }>},
    Setting{"trtllm.auth_payload", same<[](const Config& c) { return c.trtllm_auth.part; }>},
    Setting{"etcd.endpoints", same<[](const Config& c) { return etcd(c).endpoints; }>},
    Setting{"etcd.prefix", same<[](const Config& c) { return etcd(c).prefix; }>},
    Setting{"etcd.user", same<[](const Config& c) { return etcd(c).user; }>},
    Setting{"etcd.password_file", same<[](const Config& c) { return etcd(c).password; }>},
    Setting{"etcd.ca", same<[](const Config& c) { return etcd(c).ca; }>},
    Setting{"etcd.certificate", same<[](const Config& c) { return etcd(c).certificate; }>},
    Setting{"etcd.key", same<[](const Config& c) { return etcd(c).key; }>},
    Setting{"etcd.timeout", same<[](const Config& c) { return etcd(c).timeout; }>},
    Setting{"etcd.linger", same<[](const Config& c) { return etcd(c).linger; }>},
    Setting{"health.interval", same<[](const Config& c) { return c.health.interval; }>},
    Setting{"health.timeout", same<[](const Config& c) { return c.health.timeout; }>},
    Setting{"health.failures", same<[](const Config& c) { return c.health.failures; }>},
    Setting{"health.backoff", same<[](const Config& c) { return c.health.backoff; }>},
    Setting{"health.backoff_max", same<[](const Config& c) { return c.health.backoff_max; }>},
    Setting{"canary.idle", same<[](const Config& c) { return c.canary.idle; }>},
    Setting{"canary.timeout", same<[](const Config& c) { return c.canary.timeout; }>},
    Setting{"canary.failures", same<[](const Config& c) { return c.canary.failures; }>},
    Setting{"probe.enabled", same<[](const Config& c) { return c.probe.enabled; }>},
    Setting{"probe.self_test", same<[](const Config& c) { return c.probe.self_test; }>},
    Setting{"kv_index.source", same<[](const Config& c) { return c.kv_index.source; }>},
    Setting{"kv_index.blocks", same<[](const Config& c) { return c.kv_index.blocks; }>},
    Setting{"kv_index.decision_ttl", same<[](const Config& c) { return c.kv_index.decision_ttl; }>},
    Setting{"kv_index.prediction_ttl", same<[](const Config& c) { return c.kv_index.prediction_ttl; }>},
    Setting{"kv_index.silence", same<[](const Config& c) { return c.kv_index.silence; }>},
    Setting{"kv_index.snapshot", same<[](const Config& c) { return c.kv_index.snapshot; }>},
    Setting{"kv_index.snapshot_interval", same<[](const Config& c) { return c.kv_index.snapshot_interval; }>},
};
// clang-format on

}  // namespace

std::vector<std::string> needs_restart(const Config& before, const Config& after) {
  std::vector<std::string> paths;
  for (const Setting& setting : kSettings) {
    if (!setting.same(before, after)) paths.emplace_back(setting.path);
  }
  return paths;
}

}  // namespace baton::config
