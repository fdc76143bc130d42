// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/etcd_source.h"

#include "net/await.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::fleet {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr milliseconds kFirstDelay{100};
constexpr milliseconds kLongestDelay{5'000};
// How often lingering keys are checked.
constexpr milliseconds kRound{200};
// Questions about leases under way at a time: each has a connection of its own.
constexpr std::size_t kMostAsking = 8;

std::string counted(std::size_t count, std::string_view one, std::string_view several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

}  // namespace

etcd::Options client_options(const config::Etcd& config) {
  etcd::Options options;
  for (const config::EtcdServer& server : config.endpoints)
    options.endpoints.push_back({server.endpoint, server.tls});
  options.user = config.user;
  options.password = config.password;
  options.tls.ca_file = config.ca;
  options.tls.certificate_file = config.certificate;
  options.tls.key_file = config.key;
  options.timeout = config.timeout;
  return options;
}

EtcdSource::EtcdSource(boost::asio::io_context& io, net::Deadlines& deadlines,
                       net::TaskGroup& tasks, Fleet& fleet, const config::Etcd& config,
                       telemetry::Registry& metrics, telemetry::Logger& log)
    : tasks_(tasks),
      prefix_(config.prefix),
      log_(log),
      connected_(metrics.gauge("baton_etcd_connected", "1 while etcd tells what happens.")),
      listings_(metrics.counter("baton_etcd_listings_total",
                                "Times all keys were read: at the start, after a loss, after a "
                                "compaction.")),
      client_(io, deadlines, client_options(config)),
      keys_(fleet, config.linger, metrics, log),
      retry_(io),
      round_(io),
      dice_(std::random_device()()) {}

void EtcdSource::start() {
  away_since_ = system_clock::now();
  tasks_.spawn(run());
}

void EtcdSource::stop() {
  stopped_ = true;
  retry_.cancel();
  round_.cancel();
  client_.stop();
}

SourceStatus EtcdSource::status() const {
  if (away_since_) {
    // In whole seconds: people read it.
    const auto since = std::chrono::floor<std::chrono::seconds>(*away_since_);
    return {Origin::Etcd, false,
            fmt::format("etcd is away since {:%Y-%m-%dT%H:%M:%S}Z: {}; serving with {} last known",
                        fmt::gmtime(system_clock::to_time_t(since)),
                        problem_.empty() ? "it has not answered yet" : problem_,
                        counted(keys_.workers(), "worker", "workers"))};
  }
  std::string detail;
  if (keys_.lingering() > 0) {
    detail = fmt::format("{} without a lease, and kept while the engine answers",
                         counted(keys_.lingering(), "worker is", "workers are"));
  }
  if (keys_.refused() > 0) {
    detail += fmt::format("{}{} cannot be used: see etcd_entry_refused in the log",
                          detail.empty() ? "" : "; ", counted(keys_.refused(), "key", "keys"));
  }
  return {Origin::Etcd, true, std::move(detail)};
}

awaitable<void> EtcdSource::run() {
  while (!stopped_) {
    watching_ = false;
    const etcd::Failure end = co_await follow();
    if (stopped_) break;
    // etcd is there, and only its history is not.
    if (end.reason == etcd::Reason::Compacted && watching_) {
      log_.info("etcd_relist", {{"reason", end.message}});
      continue;
    }
    lost(end);
    co_await pause();
  }
}

awaitable<etcd::Failure> EtcdSource::follow() {
  // Always a listing, though the watch could often be resumed: an etcd that was restored from an
  // older copy looks like one that went on.
  if (auto listed = co_await list(); !listed) co_return std::move(listed.error());
  co_return co_await client_.watch(prefix_, revision_ + 1,
                                   [this](const std::vector<etcd::Event>& events,
                                          std::int64_t revision) { take(events, revision); });
}

awaitable<etcd::Reply<void>> EtcdSource::list() {
  const auto listing = co_await client_.list(prefix_);
  if (!listing) co_return etcd::fail(listing.error());
  if (stopped_) co_return etcd::fail(etcd::Reason::Stopped, "stopped");
  listings_.add();
  keys_.replace(listing->entries, listing->revision < revision_);
  revision_ = listing->revision;
  see_to_leaving();
  co_return etcd::Reply<void>();
}

void EtcdSource::take(const std::vector<etcd::Event>& events, std::int64_t revision) {
  if (stopped_) return;
  if (!std::exchange(watching_, true)) found();
  revision_ = revision;
  if (events.empty()) return;
  keys_.apply(events);
  see_to_leaving();
}

void EtcdSource::lost(const etcd::Failure& failure) {
  keys_.forget_unconfirmed();  // they cannot be resolved now
  const bool news = problem_.empty();
  problem_ = failure.message;
  if (!away_since_) away_since_ = system_clock::now();
  if (!news) return;
  connected_.set(0);
  lost_once_ = true;
  log_.warning("etcd_lost",
               {{"error", problem_}, {"workers", static_cast<std::int64_t>(keys_.workers())}});
}

// Only now, and not after the listing: an etcd that lets itself be read but not watched is away.
void EtcdSource::found() {
  delay_ = milliseconds(0);
  if (!away_since_) return;
  const auto away = std::chrono::duration_cast<milliseconds>(system_clock::now() - *away_since_);
  away_since_.reset();
  problem_.clear();
  connected_.set(1);
  const auto workers = static_cast<std::int64_t>(keys_.workers());
  if (lost_once_) {
    log_.info("etcd_back", {{"workers", workers},
                            {"revision", revision_},
                            {"away_ms", static_cast<std::int64_t>(away.count())}});
  } else {
    log_.info("etcd_connected", {{"workers", workers}, {"revision", revision_}});
  }
}

awaitable<void> EtcdSource::pause() {
  delay_ = std::clamp(2 * delay_, kFirstDelay, kLongestDelay);
  // Routers that lost etcd together shall not come back together.
  std::uniform_int_distribution<milliseconds::rep> jitter(delay_.count() / 2, delay_.count());
  retry_.expires_after(milliseconds(jitter(dice_)));
  co_await retry_.async_wait(net::kAwait);
}

void EtcdSource::see_to_leaving() {
  if (keys_.lingering() > 0 && !std::exchange(tending_, true)) tasks_.spawn(tend());
  for (std::size_t i = 0; i < keys_.unconfirmed() && asking_ < kMostAsking; ++i) {
    ++asking_;
    tasks_.spawn(ask_after_leases());
  }
}

awaitable<void> EtcdSource::ask_after_leases() {
  while (!stopped_) {
    const auto unconfirmed = keys_.take_unconfirmed();
    if (!unconfirmed) break;
    const auto left = co_await client_.time_to_live(unconfirmed->lease);
    if (stopped_) break;
    if (!left) {
      keys_.forget_unconfirmed();  // etcd cannot resolve them
    } else if (left->count() > 0) {
      keys_.withdraw(*unconfirmed);
    }
  }
  --asking_;
}

awaitable<void> EtcdSource::tend() {
  while (!stopped_ && keys_.lingering() > 0) {
    keys_.tend(Clock::now(), away_since_.has_value());
    round_.expires_after(kRound);
    co_await round_.async_wait(net::kAwait);
  }
  tending_ = false;
}

}  // namespace baton::fleet
