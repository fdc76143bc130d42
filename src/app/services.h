// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/server_tls.h"
#include "config/config.h"
#include "core/memory_budget.h"
#include "fleet/fleet.h"
#include "handoff/ticket_source.h"
#include "http/api_keys.h"
#include "http/client_limits.h"
#include "http/http_session.h"
#include "kvcache/view/kv_cache_view.h"
#include "net/cpu_pool.h"
#include "net/descriptor_budget.h"
#include "pipeline/request_record.h"
#include "pipeline/tokenizers.h"
#include "scheduling/decision_log.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

namespace baton::app {

// Role. The objects that all threads share.
// Confinement. Each member says for itself; all of them can be used from any thread.
// Lifetime. Owned by Router; outlives the threads.
struct Services {
  Services(config::Config settings, telemetry::Logger& logger, MemoryBudget::Ebb ebb);

  // For TaskGroups: an uncaught exception is a bug, but no reason to end the process.
  void report(std::exception_ptr thrown);

  config::Config config;
  telemetry::Logger& log;
  net::DescriptorBudget descriptors;
  MemoryBudget memory;
  telemetry::Registry metrics;
  fleet::Fleet fleet;
  pipeline::RequestLedger ledger;
  pipeline::Tokenizers tokenizers;
  kvcache::KvCacheView caches;
  http::ApiKeys keys;
  http::HttpMetrics http_metrics;
  std::unique_ptr<http::ClientLimits> clients;  // null: they have no limits of their own
  handoff::TicketSource tickets;
  scheduling::DecisionLog decisions;
  std::unique_ptr<ServerTls> tls;  // null: plain
  std::atomic<std::size_t> client_connections{0};
  std::atomic<bool> draining{false};
  std::int64_t started_at;  // seconds since 1970
  net::CpuPool cpu;
  telemetry::Histogram& loop_lag;

 private:
  telemetry::Counter& escaped_exceptions_;
};

}  // namespace baton::app
