// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/services.h"

#include "app/descriptor_limit.h"
#include "app/process_memory.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

namespace baton::app {
namespace {

std::chrono::milliseconds unix_time() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

// Seconds, from unnoticeable to severe.
constexpr std::array<double, 12> kLagBounds{0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005,
                                            0.01,   0.025,   0.05,   0.1,   0.5,   1};

std::unique_ptr<http::ClientLimits> client_limits(const config::ClientLimits& limits) {
  if (!limits.any()) return nullptr;
  std::random_device source;
  const std::uint64_t seed = std::uint64_t{source()} << 32U | source();
  return std::make_unique<http::ClientLimits>(limits, seed);
}

std::size_t cpu_threads(const config::Config& config) {
  if (config.cpu_threads != 0) return config.cpu_threads;
  return std::max(1U, std::thread::hardware_concurrency() / 2);
}

}  // namespace

Services::Services(config::Config settings, telemetry::Logger& logger, MemoryBudget::Ebb ebb)
    : config(std::move(settings)),
      log(logger),
      descriptors(descriptor_limit(),
                  [this](std::string_view what) {
                    log.warning("descriptors_short",
                                {{"for", what},
                                 {"limit", static_cast<std::int64_t>(descriptors.limit())},
                                 {"hint", "raise ulimit -n, or lower limits.connections"}});
                  }),
      memory(config.limits.memory.value_or(automatic_memory_limit("/")), std::move(ebb)),
      fleet(config, metrics, log),
      ledger(metrics, log, config.log.requests),
      tokenizers(config.limits.token_cache_bytes, metrics),
      caches(config.kv_index, metrics, log),
      keys(config.api_keys),
      http_metrics(metrics),
      clients(client_limits(config.client_limits)),
      tickets(static_cast<std::uint64_t>(unix_time().count()), std::random_device()()),
      decisions(config.decisions),
      started_at(unix_time().count() / 1000),
      cpu(cpu_threads(config)),
      loop_lag(metrics.histogram("baton_loop_lag_seconds",
                                 "How late an I/O thread comes to what is due, looked at ten times "
                                 "a second.",
                                 {}, kLagBounds)),
      escaped_exceptions_(
          metrics.counter("baton_escaped_exceptions_total",
                          "Tasks that ended by an exception that was not caught: bugs.")) {
  // From the start, so that a model without requests counts none instead of being absent.
  for (const config::Model& model : config.models) ledger.metrics(model.name);
  metrics.counter("baton_log_lines_dropped_total",
                  "Log lines dropped because standard error took no more, or failed.",
                  log.dropped());
  metrics.collect("baton_memory_used_bytes",
                  "What long bodies, what is made of them, and whole answers take of "
                  "limits.memory.",
                  [this](const telemetry::Registry::Emit& emit) {
                    emit({}, static_cast<std::int64_t>(memory.used()));
                  });
  metrics.collect("baton_memory_limit_bytes", "limits.memory; 0: there is no limit.",
                  [this](const telemetry::Registry::Emit& emit) {
                    emit({}, static_cast<std::int64_t>(memory.limit()));
                  });
  metrics.collect("baton_cpu_waiting", "Work that waits for a CPU thread.",
                  [this](const telemetry::Registry::Emit& emit) {
                    emit({}, static_cast<std::int64_t>(cpu.waiting()));
                  });
}

void Services::report(std::exception_ptr thrown) {
  escaped_exceptions_.add();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    log.error("task_failed", {{"error", exception.what()}});
  } catch (...) {
    log.error("task_failed", {{"error", "unknown"}});
  }
}

}  // namespace baton::app
