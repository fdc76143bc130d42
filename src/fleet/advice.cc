// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

namespace baton::fleet {
namespace {

using model::Role;

constexpr double kBusy = 0.8;      // of the time, without an objective
constexpr double kBusiest = 0.95;  // with one, however long a wait it allows
constexpr double kPlacesUsed = 0.9;
// Ratio of a wait's 99th percentile to its mean, if it were exponential: ln 100.
constexpr double kTail = 4.6;
// In workers: one is released only if the others could take this much more.
constexpr double kSpare = 0.1;
// Loads come from clients; beyond this they are all the same.
constexpr double kMostLoad = 1e9;
// A mean of counts like 4 / 0.8 must not be rounded up for its last bit.
constexpr double kRounding = 1e-9;

// The offered load of one role, in finite numbers.
struct Load {
  double seconds = 0;                  // watched
  double prefill = 0;                  // prefill seconds per second
  double prefill_seconds = 0;          // of one request
  std::optional<double> streams = {};  // absent: unknown
};

struct Need {
  std::size_t wanted = 1;
  std::optional<double> workers = {};  // the load, in workers that are busy all the time
  std::string reason = {};
};

// NaN is 0, too.
double bounded(double value) { return value > 0 ? std::min(value, kMostLoad) : 0; }

Load load_of(const WorkHistory::Summary& work, double share) {
  Load load{.seconds = bounded(work.seconds),
            .prefill = share * bounded(work.prefill_load),
            .prefill_seconds = bounded(work.prefill_seconds)};
  if (const auto streams = work.streams()) load.streams = share * bounded(*streams);
  return load;
}

// Workers needed to stay below that utilization.
std::size_t count_for(double load, double utilization) {
  const double count = std::ceil(load / utilization - kRounding);
  if (!(count > 1)) return 1;
  return count < static_cast<double>(kMostWanted) ? static_cast<std::size_t>(count) : kMostWanted;
}

// Mean wait in one queue for `count` workers, by Sakasegawa's approximation of M/M/c.
double mean_wait(double load, double seconds, std::size_t count) {
  const auto workers = static_cast<double>(count);
  const double busy = load / workers;
  if (busy >= 1) return std::numeric_limits<double>::infinity();
  return seconds * std::pow(busy, std::sqrt(2 * (workers + 1)) - 1) / (workers * (1 - busy));
}

// The smallest count with which 99 of 100 prompts wait no longer than `budget`: more workers never
// wait longer, so halving finds it.
std::size_t count_within(double load, double seconds, double budget) {
  std::size_t count = count_for(load, kBusiest);
  std::size_t enough = kMostWanted;
  while (count < enough) {
    const std::size_t middle = count + (enough - count) / 2;
    if (kTail * mean_wait(load, seconds, middle) <= budget) {
      enough = middle;
    } else {
      count = middle + 1;
    }
  }
  return count;
}

// `least` are needed, `ample` if the load were a little higher. Registered ones stay up to `ample`.
Need steady_need(double load, std::size_t least, std::size_t ample, const RoleFacts& role,
                 std::string reason) {
  const std::size_t wanted = std::clamp(role.registered, least, std::max(least, ample));
  if (wanted > least) reason += fmt::format("; {} would do, with too little to spare", least);
  return {.wanted = wanted, .workers = load, .reason = std::move(reason)};
}

// The need that keeps the utilization.
Need busy_need(double load, double utilization, const RoleFacts& role, std::string reason) {
  return steady_need(load, count_for(load, utilization), count_for(load + kSpare, utilization),
                     role, std::move(reason));
}

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string in_milliseconds(double seconds) { return fmt::format("{:.0f} ms", seconds * 1000); }

Need keep(const RoleFacts& role, std::string reason) {
  return {.wanted = role.registered, .workers = {}, .reason = std::move(reason)};
}

Need prefill_need(const Load& load, std::optional<std::chrono::milliseconds> ttft,
                  const RoleFacts& role) {
  if (load.prefill == 0)
    return {.wanted = 1, .workers = 0, .reason = "no prompt came that had to be computed"};
  const std::string came =
      fmt::format("{:.2f} prefill seconds came per second in the busiest minute", load.prefill);
  if (!ttft) {
    return busy_need(
        load.prefill, kBusy, role,
        fmt::format("{}; without slo.ttft workers are to be busy for 80 % of the time", came));
  }
  const double alone = load.prefill_seconds;
  const double objective = seconds_of(*ttft);
  const double budget = objective - alone;
  if (budget <= 0) {
    return busy_need(
        load.prefill, kBusy, role,
        fmt::format("{}; computing a prompt takes {} on average and slo.ttft is {}, "
                    "which no number of workers keeps: they are to be busy for 80 % of "
                    "the time",
                    came, in_milliseconds(alone), in_milliseconds(objective)));
  }
  const std::size_t least = count_within(load.prefill, alone, budget);
  return steady_need(
      load.prefill, least, count_within(load.prefill + kSpare, alone, budget), role,
      fmt::format("{}; of slo.ttft ({}) computing a prompt takes {} on average, and 99 of 100 wait "
                  "at most {} for one of {} workers",
                  came, in_milliseconds(objective), in_milliseconds(alone),
                  in_milliseconds(kTail * mean_wait(load.prefill, alone, least)), least));
}

// As long as a worker's capacity is unknown, an idle role keeps its workers, too: with one left,
// nothing would show that it is not enough.
Need decode_need(const Load& load, bool promised, const RoleFacts& role) {
  const double places = bounded(role.places.value_or(0));
  if (places == 0) {
    return keep(role, promised ? "no worker has reached the batch at which slo.itl breaks, so "
                                 "nothing says yet how many streams a worker may decode"
                               : "no slo.itl is configured, so nothing says how many streams a "
                                 "worker may decode");
  }
  if (!load.streams)
    return keep(role, "no answer has ended in the last minutes, so their length is unknown");
  const double offered = bounded(*load.streams / places);
  return busy_need(
      offered, kPlacesUsed, role,
      fmt::format("{:.1f} streams at once in the busiest minute; a worker decodes {:.1f} "
                  "within slo.itl, 90 % of which are to be used",
                  *load.streams, places));
}

// One worker does both, so the larger need is the need.
Need whole_need(Need prefill, Need decode) {
  const double busy = std::max(prefill.workers.value_or(0), decode.workers.value_or(0));
  const bool known = prefill.workers && decode.workers;
  Need need = decode.wanted > prefill.wanted ? std::move(decode) : std::move(prefill);
  need.workers = known ? std::optional(busy) : std::nullopt;
  return need;
}

Need need_of(Role role, const Load& load, const config::Slo& slo, const PoolFacts& pool) {
  const bool promised = slo.itl.has_value();
  switch (role) {
    case Role::Prefill:
      if (!pool.disaggregated)
        return keep(pool.prefill, "nothing is handed over here, so prefill workers have no work");
      return prefill_need(load, slo.ttft, pool.prefill);
    case Role::Decode:
      if (pool.disaggregated) return decode_need(load, promised, pool.decode);
      return whole_need(prefill_need(load, slo.ttft, pool.decode),
                        decode_need(load, promised, pool.decode));
    case Role::Aggregated:
      break;
  }
  return whole_need(prefill_need(load, slo.ttft, pool.aggregated),
                    decode_need(load, promised, pool.aggregated));
}

// The advice after a short time of watching: before a minute the role stays as it is, before the
// whole span it does not shrink.
Need settled(Need need, const Load& load, const RoleFacts& role) {
  constexpr auto kLeast = static_cast<double>(WorkHistory::kMinute.count());
  constexpr auto kWhole = static_cast<double>(std::chrono::seconds(WorkHistory::kSpan).count());
  if (load.seconds < kLeast)
    return keep(role, fmt::format("watched for only {:.0f} s: a minute is needed", load.seconds));
  if (load.seconds < kWhole && need.wanted < role.registered) {
    need.wanted = role.registered;
    need.reason += fmt::format(
        "; no fewer than are registered before 5 minutes were watched, now {:.0f} s", load.seconds);
  }
  return need;
}

const RoleFacts& facts_of(const PoolFacts& pool, Role role) {
  switch (role) {
    case Role::Prefill:
      return pool.prefill;
    case Role::Decode:
      return pool.decode;
    case Role::Aggregated:
      break;
  }
  return pool.aggregated;
}

// The role's share of the pool's requests: every worker that answers clients gets an equal share,
// and prefill workers compute for those of the role decode.
double share_of(const PoolFacts& pool, Role role) {
  const auto decode = static_cast<double>(pool.decode.registered);
  const auto aggregated = static_cast<double>(pool.aggregated.registered);
  if (decode + aggregated == 0) return 1;
  return (role == Role::Aggregated ? aggregated : decode) / (decode + aggregated);
}

}  // namespace

std::vector<Advice> advise(const WorkHistory::Summary& work, const std::optional<config::Slo>& slo,
                           const PoolFacts& pool) {
  std::vector<Advice> all;
  for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated}) {
    const RoleFacts& facts = facts_of(pool, role);
    if (facts.registered == 0) continue;
    const Load load = load_of(work, share_of(pool, role));
    Need need = settled(need_of(role, load, slo.value_or(config::Slo()), pool), load, facts);
    Advice advice{.role = role,
                  .wanted = std::max<std::size_t>(need.wanted, 1),
                  .available = facts.available,
                  .registered = facts.registered,
                  .utilization = {},
                  .reason = std::move(need.reason)};
    if (need.workers && facts.available > 0)
      advice.utilization = *need.workers / static_cast<double>(facts.available);
    all.push_back(std::move(advice));
  }
  return all;
}

}  // namespace baton::fleet
