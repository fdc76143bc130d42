// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/session_context.h"

#include <fmt/format.h>

#include <utility>

namespace baton::handoff {
namespace {

std::shared_ptr<const engine::PrefillOutcome> nothing_answered() {
  static const auto kNothing = std::make_shared<const engine::PrefillOutcome>();
  return kNothing;
}

// The call keeps its worker, also after the session and the fleet have released it.
awaitable<void> abort_leg(http_client::UpstreamPool& pool,
                          std::shared_ptr<const fleet::Worker> worker, engine::LegName name,
                          std::string authorization) {
  const http_client::Target target{worker->id(), worker->spec().endpoint};
  co_await engine::abort_request(pool, target, name, std::move(authorization));
}

}  // namespace

SessionContext::SessionContext(HandoffTools& with, HandoffRequest wanted, RequestTrace& report,
                               SessionEvents& session)
    : tools(with),
      request(std::move(wanted)),
      messages(tools, request),
      scheduler(request, tools.random, tools.metrics),
      machine(scheduler.permissions()),
      events(session),
      trace(&report),
      client(std::make_shared<const ClientMessage>(request.body, std::move(request.token_ids),
                                                   std::move(request.headers))) {
  attempt.outcome = nothing_answered();
  trace->page =
      tools.decisions.open(request.request_id, request.model->name(), request.prompt_tokens);
  scheduler.explain_to(trace->page);
}

void SessionContext::begin_attempt() {
  attempt.lease = {};
  attempt.outcome = nothing_answered();
  attempt.handed_off = false;
  attempt.streaming = false;
  attempt.transfer = {};
  attempt.ticket = std::make_shared<engine::HandoffTicket>();
  // The legs of an attempt share their id; a new attempt must not meet leftovers of the last.
  attempt.ticket->request_id =
      machine.attempts() == 1 ? request.request_id
                              : fmt::format("{}-r{}", request.request_id, machine.attempts() - 1);
  if (trace) {
    trace->prefill = {};
    trace->bypassed = false;
  }
}

// A long prompt need not wait for the end of its answer.
void SessionContext::free_material() {
  if (request.continuable) return;
  client.reset();
  request.body.reset();
  attempt.ticket.reset();
}

engine::LegName SessionContext::name_leg(const fleet::Worker& worker) {
  if (worker.spec().engine != model::Engine::Sglang) return {};
  const auto key = client->headers.find("authorization");
  if (key && !authorization) authorization = std::make_unique<std::string>(*key);
  return {.high = tools.random(), .low = tools.random()};
}

void SessionContext::abort(std::shared_ptr<const fleet::Worker> worker,
                           engine::LegName name) const {
  if (!name) return;
  tools.tasks.spawn(abort_leg(tools.pool, std::move(worker), name,
                              authorization ? *authorization : std::string()));
}

// Before the cache has arrived, a leg may have failed because the prefill worker has restarted
// under another id.
void SessionContext::invalidate_peer_if_stale(const Error& error) {
  if (attempt.streaming || error.info().fault != Fault::Engine) return;
  if (!machine.handing_off() || !attempt.prefill_worker) return;
  const model::WorkerId prefill = attempt.prefill_worker->id();
  // If it has answered already, the answer has its current id.
  if (*attempt.mode == model::HandoffMode::NixlPush && attempt.outcome->peer)
    tools.peers.learn(prefill, attempt.prefill_rank, *attempt.outcome->peer);
  tools.peers.invalidate_if_stale(prefill, attempt.prefill_rank, attempt.ticket->peer);
}

void SessionContext::count_waste() const {
  const auto& usage = attempt.outcome->usage;
  if (!usage) return;
  const std::int64_t computed = usage->prompt_tokens - usage->cached_tokens.value_or(0);
  if (computed > 0)
    request.counters.wasted_prefill_tokens.add(static_cast<std::uint64_t>(computed));
}

}  // namespace baton::handoff
