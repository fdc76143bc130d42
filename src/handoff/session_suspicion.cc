// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How a session notices that a worker's process ended under its request, and what follows.
#include "core/cancellation.h"
#include "handoff/session.h"
#include "net/deadlines.h"
#include "net/pause.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace baton::handoff {
namespace {

// A host whose process has ended refuses at once; one that says nothing is another matter.
constexpr std::chrono::milliseconds kRefusesWithin{250};
// Delay of a request whose worker only closed a connection.
constexpr std::chrono::milliseconds kClosesWithin{100};
// A process that ends closes its listener last: connections made meanwhile are closed with it.
constexpr std::chrono::milliseconds kEndsWithin{250};
constexpr std::chrono::milliseconds kBetweenConnections{5};

// A kept connection that breaks sooner was dead before anything was sent on it.
constexpr std::chrono::milliseconds kWasAlive{10};

}  // namespace

awaitable<bool> HandoffSession::has_ended(const fleet::Worker& worker, const Error& error,
                                          const http_client::Exchange& exchange) const {
  // A kept connection broke, and the fresh one was refused, or met a listener that was closing.
  if (error.code() == Errc::EngineUnreachable) {
    if (exchange.replayed_after() < kWasAlive) co_return false;
    if (error.cause() == std::errc::connection_refused) co_return true;
  }
  if (error.cause() != std::errc::connection_reset) co_return false;
  const auto until = std::chrono::steady_clock::now() + kEndsWithin;
  while (std::chrono::steady_clock::now() < until) {
    Cancellation enough;
    net::Deadline deadline(handoff_.pool_.deadlines(), [&enough] {
      enough.request(Error(Errc::EngineTimeout, "the worker neither took nor refused it"));
    });
    deadline.arm(kRefusesWithin);
    const http_client::Target target{worker.id(), worker.spec().endpoint};
    const auto again = co_await handoff_.pool_.connect(target, &enough);
    if (again) {
      std::array<char, 1> byte;
      const net::IoResult heard = co_await (*again)->connection.read_some(byte, kClosesWithin);
      if (heard.status != net::IoStatus::Closed && heard.status != net::IoStatus::Failed)
        co_return false;
    } else if (again.error().cause() != std::errc::connection_reset) {
      // The closing listener may also reset a connection before the kernel has reported it
      // connected.
      co_return again.error().cause() == std::errc::connection_refused;
    }
    co_await net::pause(kBetweenConnections);
  }
  co_return false;
}

awaitable<void> HandoffSession::look_for_end(const Error& error) {
  // A stream that has begun is migrated: as a rule, it is the prompt that ends a worker.
  if (streaming_ || decode_dropped_ || !decode_exchange_) co_return;
  const auto worker = decode_booking_.shared_worker();
  const Suspects::Time sent = decode_sent_;
  if (co_await has_ended(*worker, error, *decode_exchange_)) ended_under(*worker, sent);
}

void HandoffSession::ended_under(const fleet::Worker& worker, Suspects::Time sent) {
  if (!request_.body) return;  // it has got its first token
  const std::size_t ends =
      request_.counters.suspects.ended(request_seen(), worker.id(), sent, Suspects::Clock::now());
  suspect_ = true;
  if (ends >= Suspects::kTooMany) condemn(ends, worker.name());
}

// A copy of it, or another branch, may have ended workers meanwhile.
bool HandoffSession::is_poison_by_now() {
  const Suspects& suspects = request_.counters.suspects;
  if (suspects.none() || !request_.body) return false;
  const std::size_t ends = suspects.ends(request_seen(), Suspects::Clock::now());
  if (ends < Suspects::kTooMany) return false;
  condemn(ends, {});
  return true;
}

void HandoffSession::condemn(std::size_t ended_workers, std::string_view last) {
  machine_.condemn();
  held_releases_.clear();
  if (poison_) return;
  poison_.emplace(Errc::PoisonRequest,
                  fmt::format("{} workers ended while they served this request; it is offered to "
                              "no other one",
                              ended_workers));
  request_.counters.poison_requests.add();
  if (!handoff_.options_.log) return;
  handoff_.options_.log->warning("poison_request", {{"id", request_.request_id},
                                                    {"model", request_.model->name()},
                                                    {"worker", last},
                                                    {"error", poison_->message()}});
}

Suspects::Request HandoffSession::request_seen() const {
  return Suspects::request_of(request_.body->object().text());
}

void HandoffSession::clear_suspicion() {
  suspect_ = false;
  send_held_releases();
  if (!request_.counters.suspects.none() && request_.body)
    request_.counters.suspects.clear(request_seen());
}

}  // namespace baton::handoff
