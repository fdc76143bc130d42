// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sidecar/registrar.h"

#include "config/announcement.h"
#include "engine/shared/probe.h"
#include "engine/shared/running_requests.h"
#include "net/await.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

namespace baton::sidecar {
namespace {

using boost::asio::awaitable;
using engine::Health;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

// Checks in a row that an engine may miss while its port is open: it may be busy.
constexpr int kChecksToLose = 3;
// Interval of health checks while the engine is away, so that it is announced soon after its
// return.
constexpr milliseconds kEngineAway{500};
constexpr milliseconds kLookWhileDraining{100};
// For engines that do not tell what they have: about as long as routers take to hear of it and
// short requests to end.
constexpr milliseconds kBlindDrain{5'000};
constexpr milliseconds kWithdraw{5'000};
constexpr milliseconds kWithdrawAtOnce{1'000};
constexpr milliseconds kPoll{10};
constexpr std::size_t kHeaderBytes = std::size_t{64} * 1024;

using Known = decltype(telemetry::Field::value);

std::string random_instance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// Waiting may help; an answer that is no engine's will not change.
bool may_pass(const Error& error) { return error.code() != Errc::EngineProtocol; }

}  // namespace

Registrar::Registrar(boost::asio::io_context& io, net::Deadlines& deadlines, net::TaskGroup& tasks,
                     etcd::Options etcd, RegistrarOptions options,
                     std::function<void()> on_registered, telemetry::Logger& log)
    : tasks_(tasks),
      options_(std::move(options)),
      log_(log),
      pool_(io, deadlines,
            {.connect_timeout = options_.timeout,
             .idle_per_worker = 1,
             .header_bytes = kHeaderBytes}),
      client_(io, deadlines, std::move(etcd)),
      registration_(io, client_, options_.ttl, std::move(on_registered), log),
      timer_(io),
      instance_(spec().instance.empty() ? random_instance() : spec().instance) {}

awaitable<std::expected<void, std::string>> Registrar::run() {
  tasks_.spawn(keep_registered());
  auto outcome = co_await attend();
  if (outcome && announced_) co_await drain();
  co_await withdraw();
  co_return outcome;
}

void Registrar::leave() {
  if (leaving_ == Leaving::No) {
    leaving_ = Leaving::Drain;
    log_.info("shutting_down", {{"grace_ms", options_.drain.count()}});
    if (announced_) {
      announced_->draining = true;
      registration_.want(entry());
    }
  } else {
    leaving_ = Leaving::Now;
    pool_.shut_down();
  }
  timer_.cancel();
}

awaitable<std::expected<void, std::string>> Registrar::attend() {
  while (leaving_ == Leaving::No) {
    co_await await_engine();
    auto introduced = co_await ask_engine();
    if (!introduced) co_return std::unexpected(std::move(introduced.error()));
    if (!*introduced || leaving_ != Leaving::No) continue;
    announce(**std::move(introduced));
    co_await watch_engine();
    if (leaving_ != Leaving::No) break;
    announced_.reset();
    registration_.want_nothing();
  }
  co_return std::expected<void, std::string>();
}

awaitable<void> Registrar::await_engine() {
  while (leaving_ == Leaving::No) {
    const auto result = co_await check();
    if (result.health == Health::Answers) co_return;
    say_waiting(result.text);
    co_await pause(std::min(kEngineAway, options_.health_interval));
  }
}

awaitable<Registrar::Introduced> Registrar::ask_engine() {
  if (leaving_ != Leaving::No) co_return std::nullopt;
  const auto facts = co_await engine::probe(
      pool_, target(), spec(), {.first_byte = options_.timeout, .idle = options_.timeout}, {});
  if (leaving_ != Leaving::No) co_return std::nullopt;
  if (!facts) {
    if (!may_pass(facts.error())) co_return std::unexpected(facts.error().message());
    say_waiting(facts.error().message());
    co_await pause(std::min(kEngineAway, options_.health_interval));
    co_return std::nullopt;
  }
  auto announcement = introduce(options_.introduction, *facts);
  if (!announcement) co_return std::unexpected(std::move(announcement.error()));
  co_return *std::move(announcement);
}

void Registrar::announce(model::Announcement announcement) {
  if (was_announced_ && process_ended_) {
    // A chosen name stays recognizable.
    instance_ = spec().instance.empty() ? random_instance()
                                        : fmt::format("{}-{}", spec().instance, random_instance());
  }
  announcement.spec.instance = instance_;
  announced_ = std::move(announcement);
  was_announced_ = true;
  process_ended_ = false;
  waiting_said_ = false;
  log_.info("engine_ready",
            {{"url", options_.engine.to_string()},
             {"model", announced_->model},
             {"role", to_string(announced_->spec.role)},
             {"instance", instance_},
             {"data_parallel_size", std::int64_t{announced_->spec.data_parallel_size}}});
  registration_.want(entry());
}

awaitable<void> Registrar::watch_engine() {
  int missed = 0;
  while (true) {
    co_await pause(options_.health_interval);
    if (leaving_ != Leaving::No) co_return;
    const auto result = co_await check();
    if (leaving_ != Leaving::No) co_return;
    if (result.health == Health::Answers) {
      missed = 0;
      if (co_await is_another()) {
        process_ended_ = true;
        log_.warning("engine_lost", {{"url", options_.engine.to_string()},
                                     {"error", "another engine answers at its address"}});
        co_return;
      }
    } else if (result.health == Health::NotAsked) {
      continue;  // this machine's own fault
    } else if (result.health == Health::Refused || ++missed == kChecksToLose) {
      log_.warning("engine_lost", {{"url", options_.engine.to_string()}, {"error", result.text}});
      waiting_said_ = true;
      co_return;
    }
  }
}

// It may have been replaced between two looks.
awaitable<bool> Registrar::is_another() {
  const auto facts = co_await engine::probe(
      pool_, target(), spec(), {.first_byte = options_.timeout, .idle = options_.timeout}, {});
  if (!facts || leaving_ != Leaving::No) co_return false;
  auto now = introduce(options_.introduction, *facts);
  if (now) now->spec.instance = instance_;
  co_return !now || *now != *announced_;
}

awaitable<engine::HealthResult> Registrar::check() {
  auto result = co_await engine::check_health(pool_, target(), spec(), options_.timeout);
  if (result.health == Health::Refused) process_ended_ = true;
  co_return result;
}

awaitable<void> Registrar::drain() {
  const auto begun = Clock::now();
  auto until = begun + options_.drain;
  std::optional<Clock::time_point> idle_since;
  std::optional<std::uint64_t> requests;
  std::string_view outcome = "time_over";
  while (leaving_ == Leaving::Drain && Clock::now() < until) {
    // While routers may not have heard of it, new requests come.
    const bool told = registration_.settled() || registration_.stalled();
    const auto count = co_await engine::count_requests(
        pool_, target(), spec(), {.first_byte = options_.timeout, .idle = options_.timeout});
    if (!count && count.error().cause() == std::errc::connection_refused) {
      outcome = "engine_ended";
      break;
    }
    requests = count ? *count : std::nullopt;
    if (count && !requests) {
      until = std::min(until, begun + kBlindDrain);
      outcome = "not_told";
    }
    if (!told || requests != 0U) {
      idle_since.reset();
    } else if (!idle_since) {
      idle_since = Clock::now();
    }
    if (idle_since && Clock::now() - *idle_since >= options_.settle) {
      outcome = "idle";
      break;
    }
    co_await pause(kLookWhileDraining);
  }
  if (leaving_ == Leaving::Now) outcome = "cut_short";
  const auto waited = duration_cast<milliseconds>(Clock::now() - begun);
  const bool well = outcome != "time_over" && outcome != "cut_short";
  log_.write(well ? telemetry::Level::Info : telemetry::Level::Warning, "drained",
             {{"outcome", outcome},
              {"waited_ms", waited.count()},
              {"requests", requests ? Known(static_cast<std::int64_t>(*requests)) : Known()}});
}

awaitable<void> Registrar::withdraw() {
  const auto begun = Clock::now();
  registration_.finish();
  while (!registration_over_) {
    const auto limit = leaving_ == Leaving::Now ? kWithdrawAtOnce : kWithdraw;
    const auto left = begun + limit - Clock::now();
    if (left <= left.zero()) break;
    co_await pause(duration_cast<milliseconds>(left) + milliseconds(1));
  }
  if (!registration_over_ && registration_.held_key() != nullptr) {
    log_.warning("registration_left",
                 {{"key", *registration_.held_key()}, {"ttl_s", options_.ttl.count()}});
  }
  client_.stop();
  pool_.shut_down();
  while (!registration_over_) co_await pause(kPoll);
  log_.info("stopped", {});
}

awaitable<void> Registrar::keep_registered() {
  co_await registration_.run();
  registration_over_ = true;
  timer_.cancel();
}

awaitable<void> Registrar::pause(milliseconds time) {
  timer_.expires_after(time);
  co_await timer_.async_wait(net::kAwait);
}

void Registrar::say_waiting(const std::string& why) {
  if (std::exchange(waiting_said_, true)) return;
  log_.info("engine_awaited", {{"url", options_.engine.to_string()}, {"error", why}});
}

Registration::Entry Registrar::entry() const {
  return {.key = fmt::format("{}{}/{}/{}", options_.prefix, announced_->model,
                             to_string(announced_->spec.role), instance_),
          .value = config::to_json(*announced_)};
}

}  // namespace baton::sidecar
