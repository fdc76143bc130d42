// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/poison_guard.h"

#include <fmt/format.h>

#include <memory>

namespace baton::handoff {

void PoisonGuard::ended_under(const fleet::Worker& worker, Suspects::Time sent) {
  if (!session_.client) return;  // it has got its first token
  const std::size_t ends = session_.request.counters.suspects.ended(request_seen(), worker.id(),
                                                                    sent, Suspects::Clock::now());
  suspect_ = true;
  if (ends >= Suspects::kTooMany) condemn(ends, worker.name());
}

// A copy of it, or another branch, may have ended workers meanwhile.
bool PoisonGuard::is_poison_by_now() {
  const Suspects& suspects = session_.request.counters.suspects;
  if (suspects.none() || !session_.client) return false;
  const std::size_t ends = suspects.ends(request_seen(), Suspects::Clock::now());
  if (ends < Suspects::kTooMany) return false;
  condemn(ends, {});
  return true;
}

void PoisonGuard::condemn(std::size_t ended_workers, std::string_view last) {
  session_.machine.condemn();
  if (poison_) return;
  poison_ = std::make_unique<Error>(
      Errc::PoisonRequest,
      fmt::format("{} workers ended while they served this request; it is offered to no other one",
                  ended_workers));
  const HandoffRequest& request = session_.request;
  request.counters.poison_requests.add();
  telemetry::Logger* log = session_.tools.options.log;
  if (!log) return;
  log->warning("poison_request", {{"id", request.request_id},
                                  {"model", request.model->name()},
                                  {"worker", last},
                                  {"error", poison_->message()}});
}

Suspects::Request PoisonGuard::request_seen() const {
  return Suspects::request_of(session_.client->body->object().text());
}

void PoisonGuard::clear() {
  suspect_ = false;
  Suspects& suspects = session_.request.counters.suspects;
  if (!suspects.none() && session_.client) suspects.clear(request_seen());
}

}  // namespace baton::handoff
