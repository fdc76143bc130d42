// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/sim/pin_table.h"
#include "tools/sim/request.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

enum class FaultKind {
  Refuse,
  Reset,
  Status,
  Hang,
  HangStream,
  Cut,
  Slow,
  Malformed,
  ErrorEvent,
  Die,
  SlowSteps,  // strikes steps, and no request
  // These strike what is told of KV blocks, batch by batch.
  KvSilence,
  KvDrop,
  KvLose,
  KvDelay,
  KvGarbage,
  KvDuplicate,
  KvDuplicateStores,
  KvLie,
  KvScramble,
  KvRestart,
};

std::string_view to_string(FaultKind kind);
// Whether it strikes KV events, and no request.
constexpr bool strikes_kv(FaultKind kind) { return kind >= FaultKind::KvSilence; }
constexpr bool strikes_requests(FaultKind kind) { return kind < FaultKind::SlowSteps; }

struct Fault {
  FaultKind kind = FaultKind::Status;
  std::optional<Phase> phase = {};  // absent: any
  bool health = false;              // strikes health checks, and no request
  std::optional<std::uint64_t> count = {};
  int status = 503;
  std::uint64_t after_tokens = 0;
  double delay_ms = 0;
  double factor = 1;  // SlowSteps: how many times as long a step lasts
  std::optional<double> for_ms = {};
  std::string match = {};  // strikes only requests whose body has this text; empty: any
};

Result<Fault> read_fault(const nlohmann::json& body);

// Role. The faults that are switched on, in the order they came.
// Confinement. One thread; time comes in as an argument.
// Invariants. A fault whose count or time is used up is never returned again.
class FaultTable {
 public:
  void add(const Fault& fault, TimePoint now);
  void clear() { active_.clear(); }

  // The first fault that strikes a request of this phase with this body; one of its count is used up.
  std::optional<Fault> strike(Phase phase, TimePoint now, std::string_view body = {});
  // The same for a health check.
  std::optional<Fault> strike_health(TimePoint now);
  // The same for a batch of KV events.
  std::optional<Fault> strike_kv(TimePoint now);
  // How many times as long the step that begins now lasts; one of the count of the fault is used up.
  double step_factor(TimePoint now);
  bool refusing(TimePoint now);
  nlohmann::json list(TimePoint now);

 private:
  struct Active {
    Fault fault;
    std::optional<TimePoint> until;
  };
  template <typename Matches>
  std::optional<Fault> take_first(TimePoint now, Matches matches);
  void drop_finished(TimePoint now);

  std::vector<Active> active_;
};

}  // namespace baton::sim
