// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/random.h"
#include "engine/shared/peer_directory.h"
#include "handoff/ticket_source.h"
#include "http_client/exchange.h"
#include "http_client/upstream_pool.h"
#include "model/trtllm_auth.h"
#include "net/cpu_pool.h"
#include "net/task_group.h"
#include "scheduling/decision_log.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace baton::handoff {

struct Options {
  http_client::ExchangeTimeouts timeouts;
  std::chrono::milliseconds grace;  // to complete a hand-off whose client has left
  std::size_t response_bytes;
  telemetry::Logger* log = nullptr;  // for failed legs
  // Members of clients' bodies that no worker gets.
  std::vector<std::string> stripped_fields = {};
  model::TrtllmAuth trtllm_auth = {};
  // How long a release is retried: as long as vLLM keeps unfetched blocks.
  std::chrono::milliseconds release_for = std::chrono::seconds(30);
};

// Services for the sessions of one I/O thread. Owned by Handoff, which outlives them.
struct HandoffTools {
  http_client::UpstreamPool& pool;
  net::TaskGroup& tasks;
  net::CpuPool& cpu;  // reads long answers, and makes bodies of them
  TicketSource& tickets;
  Random random;
  telemetry::Registry& metrics;
  scheduling::DecisionLog& decisions;
  Options options;
  engine::PeerDirectory peers;
};

}  // namespace baton::handoff
