// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/loadgen/conversation.h"
#include "tools/loadgen/options.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace baton::loadgen {

// Role. The users' conversations: the n-th one is a function of n and of the seed.
// Confinement. Immutable; any thread.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual Conversation conversation(std::uint64_t number) const = 0;
  // How many there are; nullopt: as many as one likes.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
  // When one begins, counted from the start, where the workload itself says it.
  virtual std::optional<std::chrono::microseconds> begins(std::uint64_t /*number*/) const {
    return std::nullopt;
  }
};

// Reads the trace where there is one.
Result<std::unique_ptr<const Workload>> make_workload(const Plan& plan);

}  // namespace baton::loadgen
