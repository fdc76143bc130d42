// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "engine/shared/introspection.h"
#include "kvcache/index/block_hash.h"
#include "kvcache/view/cache.h"
#include "model/version.h"
#include "model/worker.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::kvcache {

// How the events of one rank of a worker come.
struct FeedPlan {
  enum class Way : std::uint8_t {
    None,       // they do not
    Subscribe,  // over ZeroMQ
    Poll,       // asked for over HTTP
  };
  Way way = Way::None;
  std::string events;  // Subscribe: the rank's own endpoints
  std::string replay;
  std::string topic;
  std::optional<std::uint32_t> block_size;  // as it was said of the worker
  bool operator==(const FeedPlan&) const = default;
};

// From the worker's announcement and, if that is silent, from its own facts (null: it has not been
// asked yet).
FeedPlan plan_feed(const model::WorkerSpec& spec, const engine::Facts* facts, std::uint32_t rank);

// The blocks of its cache as long as no event says otherwise.
BlockShape block_shape(const model::WorkerSpec& spec, const engine::Facts* facts);

// The adapter behind `model`, by the worker's own facts; empty if it is none.
std::string adapter_of(const engine::Facts* facts, std::string_view model);
// Whether it has any, whichever model it is asked for.
bool serves_adapters(const engine::Facts& facts);

// Keys that the release leaves out of its events; an unknown release counts as a recent one.
Hidden hidden_by(model::Engine engine, std::optional<model::Version> version);

// `endpoint` with its port moved on by `rank`. Requires: tcp:// with a port, or rank 0.
std::string endpoint_of_rank(const std::string& endpoint, std::uint32_t rank);

}  // namespace baton::kvcache
