// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/handoff.h"

#include "handoff/session.h"

#include <memory>
#include <utility>

namespace baton::handoff {

Counters::Counters(telemetry::Registry& registry, const std::string& model)
    : retries(registry.counter("baton_retries_total",
                               "Attempts repeated on another worker before the first token.",
                               {{"model", model}})),
      migrations(registry.counter("baton_migrations_total",
                                  "Streams continued on another worker after the first token.",
                                  {{"model", model}})),
      releases(registry.counter("baton_handoff_releases_total",
                                "Decode legs sent only to release what a prefill worker held.",
                                {{"model", model}})),
      wasted_prefill_tokens(registry.counter(
          "baton_wasted_prefill_tokens_total",
          "Prompt tokens computed by prefill workers for answers that no client got.",
          {{"model", model}})),
      poison_requests(registry.counter(
          "baton_poison_requests_total",
          "Requests given up because several workers' processes ended under them or their copies.",
          {{"model", model}})) {
  for (std::size_t i = 0; i < scheduling::kBypassDecisions; ++i) {
    bypasses[i] = &registry.counter(
        "baton_prefill_bypass_total", "Whether prompts were left to the decode worker to compute.",
        {{"model", model},
         {"decision", std::string(to_string(static_cast<scheduling::Bypassed>(i)))}});
  }
}

Handoff::Handoff(http_client::UpstreamPool& pool, net::TaskGroup& tasks, net::CpuPool& cpu,
                 TicketSource& tickets, Random random, telemetry::Registry& metrics,
                 scheduling::DecisionLog& decisions, Options options)
    : tools_{.pool = pool,
             .tasks = tasks,
             .cpu = cpu,
             .tickets = tickets,
             .random = std::move(random),
             .metrics = metrics,
             .decisions = decisions,
             .options = options,
             .peers = engine::PeerDirectory(pool, options.timeouts)} {}

awaitable<Result<UpstreamResponse>> Handoff::run(HandoffRequest request, RequestTrace& trace,
                                                 Cancellation& cancellation) {
  if (cancellation.requested()) co_return fail(cancellation.reason());
  UpstreamResponse answer(
      std::make_shared<HandoffSession>(tools_, std::move(request), trace, cancellation));
  if (auto begun = co_await answer.begin(); !begun) co_return fail(std::move(begun.error()));
  co_return answer;
}

UpstreamResponse::~UpstreamResponse() {
  if (session_) session_->leave();
}

awaitable<Result<void>> UpstreamResponse::begin() { return session_->begin(); }
std::optional<std::string>& UpstreamResponse::whole() { return session_->whole(); }
http_client::Exchange& UpstreamResponse::stream() { return session_->stream(); }
void UpstreamResponse::first_token() { session_->first_token(); }
void UpstreamResponse::produced(std::uint64_t tokens) { session_->produced(tokens); }
void UpstreamResponse::finished() { session_->finished(); }
void UpstreamResponse::forbid_migration() { session_->forbid_migration(); }
awaitable<Result<void>> UpstreamResponse::recover(Error error, const engine::Progress* progress) {
  return session_->recover(std::move(error), progress);
}
bool UpstreamResponse::handed_off() const { return session_->handed_off(); }
std::shared_ptr<const engine::PrefillOutcome> UpstreamResponse::prefill() const {
  return session_->prefill();
}
awaitable<void> UpstreamResponse::await_prefill(bool needed) {
  return session_->await_prefill(needed);
}

}  // namespace baton::handoff
