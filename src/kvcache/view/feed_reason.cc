// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feed_reason.h"

#include <fmt/format.h>

#include <utility>

namespace baton::kvcache {
namespace {

// vLLM and SGLang share the rule, and an endpoint with a host has the same effect: silence.
std::string unreachable(const FeedPlan& plan, model::Engine engine) {
  return fmt::format(
      "cannot connect to {}, where its KV events should be: {} listens only at an endpoint with a "
      "wildcard for host, as tcp://*:5557, and connects to any other",
      plan.events, model::to_string(engine));
}

}  // namespace

std::string feed_reason(FeedHealth health, const FeedPlan& plan, model::Engine engine) {
  switch (health) {
    case FeedHealth::None:
    case FeedHealth::Waiting:
    case FeedHealth::Live:
      return {};
    case FeedHealth::Silent:
      return "requests have left new blocks in its cache, and no KV event has come";
    case FeedHealth::Unreachable:
      return unreachable(plan, engine);
    case FeedHealth::Mixed:
      return "its KV events do not tell apart blocks of adapters, salts or extra keys";
    case FeedHealth::Broken:
      return "its KV events cannot be read, or cannot be had";
  }
  std::unreachable();
}

}  // namespace baton::kvcache
