// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/monitor/watch.h"

#include "engine/shared/canary.h"
#include "engine/shared/health_check.h"
#include "engine/shared/probe.h"
#include "net/await.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace baton::fleet {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;

constexpr milliseconds kRound{100};
// Interval for unreachable workers, so that a worker that returns serves within a second.
constexpr milliseconds kWorkerAway{400};
// Silent workers, which do not even refuse, are asked less and less often, and not for long: they
// must not delay the others.
constexpr milliseconds kSilent{5'000};
constexpr milliseconds kEjected{1'000};
constexpr milliseconds kAfterFailedCanary{1'000};
constexpr std::size_t kMostUnderWay = 64;
// Questions per second to workers that are well; a large fleet is asked in turn.
constexpr double kBudget = 50;
constexpr double kMostSaved = 10;
// A worker's adapters are asked for this much less often than its health, with at most half of the
// questions.
constexpr int kIntervalsOfModels = 6;
constexpr double kShareOfModels = 0.5;

// Errors of a hand-off that are not the tested worker's doing.
bool tells_nothing(const Error& error) {
  switch (error.code()) {
    case Errc::EngineOverloaded:
    case Errc::EngineUnreachable:
    case Errc::EngineUnauthorized:
    case Errc::NoWorkers:
    case Errc::NoEligibleWorker:
    case Errc::InvalidRouting:  // the partner has just left
    case Errc::WorkersBusy:
    case Errc::QueueFull:
    case Errc::QueueTimeout:
    case Errc::ShuttingDown:
    case Errc::OutOfResources:
      return true;
    default:
      return false;
  }
}

Failure failure_of(engine::Health health) {
  return health == engine::Health::Refused ? Failure::Refused : Failure::Unreachable;
}

}  // namespace

Watch::Watch(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
             Fleet& fleet, http_client::PoolOptions pool, Options options, SelfTest self_test)
    : tasks_(tasks),
      fleet_(fleet),
      options_(options),
      self_test_(std::move(self_test)),
      pool_(io, deadlines, pool),
      timer_(io) {}

void Watch::start() {
  fleet_.on_added([this](const auto& worker, const std::string& model) { observe(worker, model); });
  fleet_.on_gone([this](model::WorkerId id) {
    monitored_.erase(id.value);
    pool_.forget(id);
  });
  tasks_.spawn(watch());
}

void Watch::stop() {
  stopped_ = true;
  timer_.cancel();
  pool_.shut_down();
}

const engine::Facts* Watch::facts(model::WorkerId id) const {
  const auto found = monitored_.find(id.value);
  return found == monitored_.end() || !found->second.probed ? nullptr : &found->second.facts;
}

void Watch::observe(const std::shared_ptr<Worker>& worker, const std::string& model) {
  MonitoredWorker& monitored = monitored_[worker->id().value];
  // Something else is said of it now: it is asked again whether that is true.
  monitored.worker = worker;
  monitored.model = model;
  monitored.probed = false;
  monitored.due = {};
  // Only this one: a look at all of them for each that joins would make large fleets slow to join.
  if (stopped_ || under_way_ >= kMostUnderWay || !must_be_asked(monitored)) return;
  const Need need = need_of(monitored, Clock::now());
  if (need != Need::Nothing) ask(monitored, need);
}

// It is not well, or nothing is known of it yet: there is no limit to how often such are asked.
bool Watch::must_be_asked(const MonitoredWorker& monitored) const {
  return monitored.worker->condition() != Condition::Up ||
         (!monitored.probed && options_.probe.enabled);
}

awaitable<void> Watch::watch() {
  while (!stopped_) {
    fleet_.sweep();
    make_rounds();
    timer_.expires_after(kRound);
    co_await timer_.async_wait(net::kAwait);
  }
}

void Watch::make_rounds() {
  const Time now = Clock::now();
  const std::chrono::duration<double> passed = now - std::exchange(last_round_, now);
  allowance_ = std::min(kMostSaved, allowance_ + kBudget * passed.count());
  std::vector<std::uint64_t> waiting;
  for (const auto& [id, monitored] : monitored_) {
    if (need_of(monitored, now) != Need::Nothing) waiting.push_back(id);
  }
  // In turn: silent workers must not delay the others.
  std::ranges::sort(waiting);
  std::ranges::rotate(waiting, std::ranges::upper_bound(waiting, turn_));
  for (const std::uint64_t id : waiting) {
    if (under_way_ >= kMostUnderWay) return;
    MonitoredWorker& monitored = monitored_.at(id);
    const bool well = !must_be_asked(monitored);
    if (well && allowance_ < 1) continue;
    if (well) allowance_ -= 1;
    turn_ = id;
    ask(monitored, need_of(monitored, now));
  }
}

Watch::Need Watch::need_of(const MonitoredWorker& monitored, Time now) const {
  if (monitored.asking || now < monitored.due) return Need::Nothing;
  const Worker& worker = *monitored.worker;
  // Requests may have found out first that the address answers again; it is another process.
  if (worker.health().process_ended()) return Need::Look;
  switch (worker.condition()) {
    case Condition::New:
    case Condition::Unreachable:
      return Need::Look;
    case Condition::Misconfigured:
      return Need::Probe;
    case Condition::Ejected:
      // Also while it waits: a process that was replaced need not wait.
      return worker.health().may_return(now) || now - monitored.asked >= kEjected ? Need::Look
                                                                                  : Need::Nothing;
    case Condition::OnTrial:
      return Need::Nothing;
    case Condition::Up:
    case Condition::HalfOpen:
      break;
  }
  if (!monitored.probed && options_.probe.enabled) return Need::Probe;
  const Time heard = worker.health().last_success();
  if (options_.canary.idle.count() > 0) {
    // A canary is a trial, too.
    const bool idle = now - std::max(heard, monitored.canary) >= options_.canary.idle;
    const bool again = monitored.canaries > 0 && now - monitored.canary >= kAfterFailedCanary &&
                       heard < monitored.canary;
    const bool trial =
        worker.condition() == Condition::HalfOpen && now - monitored.canary >= kAfterFailedCanary;
    if (idle || again || trial) return Need::Canary;
  }
  const bool may_have_others = monitored.probed && worker.spec().engine != model::Engine::Trtllm;
  const std::chrono::duration<double> turn(static_cast<double>(monitored_.size()) /
                                           (kShareOfModels * kBudget));
  const auto pause =
      std::max<std::chrono::duration<double>>(turn, kIntervalsOfModels * options_.health.interval);
  if (may_have_others && now - monitored.cards >= pause) return Need::Models;
  const bool silent = now - std::max(heard, monitored.asked) >= options_.health.interval;
  return silent ? Need::Look : Need::Nothing;
}

void Watch::ask(MonitoredWorker& monitored, Need need) {
  monitored.asking = true;
  ++under_way_;
  tasks_.spawn(attend(monitored.worker->id().value, need));
}

awaitable<void> Watch::attend(std::uint64_t id, Need need) {
  // Whatever happens on the way.
  const auto done = [this, id](void*) {
    --under_way_;
    note({id}, [](MonitoredWorker& monitored) { monitored.asking = false; });
    if (!monitored_.contains(id)) pool_.forget({id});
  };
  const std::unique_ptr<void, decltype(done)> at_the_end(this, done);
  const auto found = monitored_.find(id);
  if (found != monitored_.end() && !stopped_) {
    if (need == Need::Canary) {
      co_await send_canary(found->second);
    } else if (need == Need::Models) {
      co_await ask_models(found->second);
    } else {
      co_await look(found->second, need);
    }
  }
}

awaitable<void> Watch::look(MonitoredWorker monitored, Need need) {
  Worker& worker = *monitored.worker;
  const auto wait = [this, &worker](milliseconds pause) {
    note(worker.id(), [&](MonitoredWorker& known) { known.due = Clock::now() + pause; });
  };
  const http_client::Target target{worker.id(), worker.spec().endpoint};
  const milliseconds timeout =
      monitored.silences > 0 ? std::min(options_.health.timeout, kSilent) : options_.health.timeout;
  const engine::HealthResult result =
      co_await engine::check_health(pool_, target, worker.spec(), timeout);
  if (outdated(monitored)) co_return;
  if (result.health == engine::Health::NotAsked) {
    wait(kWorkerAway);
    co_return;
  }
  const bool silent = result.health == engine::Health::Unreachable;
  note(worker.id(), [silent](MonitoredWorker& known) {
    known.asked = Clock::now();
    known.silences = silent ? std::min(known.silences + 1, 4U) : 0;
  });
  if (result.health != engine::Health::Answers) {
    worker.unreachable(failure_of(result.health), result.text);
    wait(std::min(kWorkerAway * (1 << monitored.silences), kSilent));
    co_return;
  }
  if (worker.health().process_ended()) {
    fleet_.restarted(worker.id());  // probed again as another worker
    co_return;
  }
  const bool must_prove = !monitored.probed && options_.probe.enabled;
  if ((must_prove || need == Need::Probe) && !co_await admit(monitored)) {
    wait(worker.condition() == Condition::Misconfigured ? options_.health.interval : kWorkerAway);
    co_return;
  }
  if (!stopped_) worker.answered();
}

awaitable<bool> Watch::admit(MonitoredWorker& monitored) {
  Worker& worker = *monitored.worker;
  const http_client::ExchangeTimeouts timeouts{.first_byte = options_.health.timeout,
                                               .idle = options_.health.timeout};
  auto facts = co_await engine::probe(pool_, {worker.id(), worker.spec().endpoint}, worker.spec(),
                                      timeouts, {});
  if (outdated(monitored)) co_return false;
  if (!facts) {
    if (facts.error().code() == Errc::OutOfResources) co_return false;
    // A server that answers something else is no engine; one that fails to answer may just be
    // dying.
    if (facts.error().code() == Errc::EngineProtocol) {
      worker.misconfigured(facts.error().message());
    } else {
      worker.unreachable(Failure::Unreachable, facts.error().message());
    }
    co_return false;
  }
  worker.runs(model::parse_version(facts->version));
  worker.has_vocabulary(facts->vocabulary_size);
  if (facts->max_total_tokens && facts->block_size && *facts->block_size > 0) {
    worker.has_kv_blocks(static_cast<std::uint64_t>(*facts->max_total_tokens) / *facts->block_size);
  }
  worker.set_renders_chats_in_code(facts->chats_in_code);
  if (const auto* const card = engine::find_card(*facts, monitored.model);
      card != nullptr && card->max_model_len) {
    worker.has_max_model_len(static_cast<std::uint64_t>(*card->max_model_len));
  }
  const auto denied = engine::contradictions(monitored.model, worker.spec(), *facts);
  note(worker.id(), [&](MonitoredWorker& known) {
    known.facts = *facts;
    known.cards = Clock::now();
  });
  if (!denied.empty()) {
    worker.misconfigured(fmt::format("{}", fmt::join(denied, "; ")));
    co_return false;
  }
  fleet_.loaded(worker.id(), engine::adapter_names(*facts, monitored.model));
  if (options_.probe.self_test && self_test_) {
    // Tests wait for each other: they must not keep the health checks waiting, too.
    --under_way_;
    const auto passed = co_await self_test_(monitored.worker, monitored.model);
    ++under_way_;
    if (outdated(monitored)) co_return false;
    if (!passed && tells_nothing(passed.error())) co_return false;
    if (!passed) {
      worker.misconfigured(fmt::format("the self-test failed: {}", passed.error().message()));
      co_return false;
    }
  }
  note(worker.id(),
       [&](MonitoredWorker& known) { known.probed = known.worker == monitored.worker; });
  co_return true;
}

// Does not judge its health.
awaitable<void> Watch::ask_models(MonitoredWorker monitored) {
  const Worker& worker = *monitored.worker;
  const http_client::ExchangeTimeouts timeouts{.first_byte = options_.health.timeout,
                                               .idle = options_.health.timeout};
  auto said =
      co_await engine::probe_models(pool_, {worker.id(), worker.spec().endpoint}, timeouts, {});
  if (outdated(monitored)) co_return;
  note(worker.id(), [](MonitoredWorker& known) { known.cards = Clock::now(); });
  if (!said || said->models.empty()) co_return;
  fleet_.loaded(worker.id(), engine::adapter_names(*said, monitored.model));
  note(worker.id(), [&](MonitoredWorker& known) { known.facts.models = std::move(said->models); });
}

awaitable<void> Watch::send_canary(MonitoredWorker monitored) {
  Worker& worker = *monitored.worker;
  const milliseconds timeout = options_.canary.timeout;
  note(worker.id(), [](MonitoredWorker& known) { known.canary = Clock::now(); });
  const auto outcome =
      co_await engine::send_canary(pool_, {worker.id(), worker.spec().endpoint}, monitored.model,
                                   worker.spec(), {.first_byte = timeout, .idle = timeout});
  if (stopped_) co_return;
  if (outcome) {
    note(worker.id(), [](MonitoredWorker& known) {
      known.canaries = 0;
      known.asked = Clock::now();
    });
    if (*outcome == engine::CanaryOutcome::Served) worker.succeeded();
    if (*outcome == engine::CanaryOutcome::PushedBack) worker.pushed_back(kAfterFailedCanary);
    co_return;
  }
  if (outcome.error().code() == Errc::OutOfResources) co_return;
  if (outcome.error().cause() == std::errc::connection_refused) {
    worker.unreachable(Failure::Refused, outcome.error().message());
    co_return;
  }
  const std::size_t failed = monitored.canaries + 1;
  note(worker.id(), [failed](MonitoredWorker& known) { known.canaries = failed; });
  if (failed < options_.canary.failures && worker.condition() == Condition::Up) co_return;
  note(worker.id(), [](MonitoredWorker& known) { known.canaries = 0; });
  worker.eject(fmt::format("{} canaries failed: {}", failed, outcome.error().message()));
}

// The worker has a new announcement, or it has gone: the results of the question are void.
bool Watch::outdated(const MonitoredWorker& monitored) const {
  const auto found = monitored_.find(monitored.worker->id().value);
  return stopped_ || found == monitored_.end() || found->second.worker != monitored.worker;
}

template <class Write>
void Watch::note(model::WorkerId id, Write write) {
  const auto found = monitored_.find(id.value);
  if (found != monitored_.end()) write(found->second);
}

}  // namespace baton::fleet
