// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "tools/sim/engine_core.h"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace baton::sim {

// Role. The one-token request that an engine makes of itself to check its health. Any token counts,
//   as in SGLang: an engine that is busy with other requests is healthy.
// Confinement. The server's thread.
// Lifetime. Lives in the coroutine that asks; the engine outlives it.
// Invariants. However it ends, its sequence is gone from the engine.
class HealthRequest final : public SequenceListener {
 public:
  static constexpr std::chrono::seconds kTimeout{20};

  explicit HealthRequest(EngineCore& engine);
  ~HealthRequest() override;
  HealthRequest(const HealthRequest&) = delete;
  HealthRequest& operator=(const HealthRequest&) = delete;

  // Looks every `poll_ms`, the first time after one; false after kTimeout without a token.
  boost::asio::awaitable<bool> seen(double poll_ms);

  void on_token(TokenProduced& token) override;

 private:
  std::uint64_t generated() const;

  EngineCore& engine_;
  EngineRank& rank_;
  std::uint64_t before_;
  std::optional<SequenceId> sequence_;  // while it has produced nothing
};

}  // namespace baton::sim
