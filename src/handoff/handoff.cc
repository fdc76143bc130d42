// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "handoff/handoff.h"

#include "handoff/run.h"

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
          "Prompt tokens computed by prefill workers for answers nobody got.", {{"model", model}})),
      poison_requests(registry.counter(
          "baton_poison_requests_total",
          "Requests given up because several workers' processes ended under them or their copies.",
          {{"model", model}})) {
  for (std::size_t i = 0; i < kBypassDecisions; ++i) {
    bypasses[i] = &registry.counter(
        "baton_prefill_bypass_total", "Whether prompts were left to the decode worker to compute.",
        {{"model", model}, {"decision", std::string(to_string(static_cast<Bypassed>(i)))}});
  }
}

Handoff::Handoff(http_client::UpstreamPool& pool, net::TaskGroup& tasks, net::CpuPool& cpu,
                 TicketSource& tickets, fleet::Random random, telemetry::Registry& metrics,
                 DecisionLog& decisions, Options options)
    : pool_(pool),
      tasks_(tasks),
      cpu_(cpu),
      tickets_(tickets),
      random_(std::move(random)),
      options_(options),
      metrics_(metrics),
      decisions_(decisions),
      peers_(pool, options.timeouts) {}

awaitable<Result<Answer>> Handoff::run(Job job, Trail& trail, Cancellation& cancellation) {
  if (cancellation.requested()) co_return fail(cancellation.reason());
  Answer answer(std::make_shared<Run>(*this, std::move(job), trail, cancellation));
  if (auto begun = co_await answer.begin(); !begun) co_return fail(std::move(begun.error()));
  co_return answer;
}

Answer::~Answer() {
  if (run_) run_->leave();
}

awaitable<Result<void>> Answer::begin() { return run_->begin(); }
std::optional<std::string>& Answer::whole() { return run_->whole(); }
http_client::Exchange& Answer::stream() { return run_->stream(); }
void Answer::first_token() { run_->first_token(); }
void Answer::produced(std::uint64_t tokens) { run_->produced(tokens); }
void Answer::finished() { run_->finished(); }
void Answer::forbid_migration() { run_->forbid_migration(); }
awaitable<Result<void>> Answer::recover(Error error, const engine::Progress* progress) {
  return run_->recover(std::move(error), progress);
}
bool Answer::handed_off() const { return run_->handed_off(); }
std::shared_ptr<const engine::PrefillOutcome> Answer::prefill() const { return run_->prefill(); }
awaitable<void> Answer::await_prefill(bool needed) { return run_->await_prefill(needed); }

}  // namespace baton::handoff
