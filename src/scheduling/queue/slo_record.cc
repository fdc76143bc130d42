// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/slo_record.h"

#include <algorithm>
#include <cmath>

namespace baton::scheduling {
namespace {

// The margin is stable if one first token of a hundred is late: each late one takes back the gain
// of a hundred in time.
constexpr double kFirstMargin = 0.9;
constexpr double kLeastMargin = 0.3;
constexpr double kCut = 0.02;
constexpr double kRaise = kCut / 99;
// A request served half a minute ago counts half.
constexpr std::chrono::duration<double> kHalfLife{30};

std::shared_ptr<telemetry::Counter> counter(telemetry::Registry& registry, const std::string& model,
                                            const std::string& name_space,
                                            const std::string& policy_class, const char* outcome) {
  return registry.held_counter(
      "baton_slo_requests_total",
      "Requests with an objective: streams that met or missed it, and requests "
      "refused because they would have.",
      {{"model", model}, {"namespace", name_space}, {"class", policy_class}, {"outcome", outcome}});
}

bool keeps(std::optional<std::chrono::milliseconds> objective, std::optional<double> seconds) {
  return !objective || !seconds || *seconds <= std::chrono::duration<double>(*objective).count();
}

}  // namespace

SloRecord::SloRecord(const config::Slo& slo, telemetry::Registry& registry,
                     const std::string& model, const std::string& name_space,
                     const std::string& policy_class)
    : slo_(slo),
      margin_(kFirstMargin),
      met_(counter(registry, model, name_space, policy_class, "met")),
      missed_(counter(registry, model, name_space, policy_class, "missed")),
      refused_(counter(registry, model, name_space, policy_class, "refused")),
      attainment_(registry.held_share(
          "baton_slo_attainment",
          "Share of the streams of the last minute that met the objective `slo` of their class.",
          {{"model", model}, {"namespace", name_space}, {"class", policy_class}})) {
  attainment_->set(1);
}

void SloRecord::served(std::optional<double> ttft, std::optional<double> itl, Time now) {
  if (!ttft) return failed(now);
  const bool in_time = keeps(slo_.ttft, ttft);
  count(in_time && keeps(slo_.itl, itl), now);
  if (slo_.ttft) move_margin(in_time);
}

void SloRecord::move_margin(bool in_time) {
  const locks::Lock lock(mutex_);
  margin_.store(std::clamp(margin() + (in_time ? kRaise : -kCut), kLeastMargin, 1.0),
                std::memory_order_relaxed);
}

void SloRecord::failed(Time now) { count(false, now); }

void SloRecord::refused(bool late) {
  refused_->add();
  if (late) move_margin(false);
}

void SloRecord::count(bool kept, Time now) {
  (kept ? met_ : missed_)->add();
  const locks::Lock lock(mutex_);
  seen_ = seen(now);
  last_ = std::max(last_, now);
  seen_.all += 1;
  if (kept) seen_.kept += 1;
  attainment_->set(seen_.kept / seen_.all);
}

SloRecord::Seen SloRecord::seen(Time now) const {
  const auto since = std::max(Time::duration(0), now - last_);
  const double rest = std::exp2(-(since / kHalfLife));
  return {.kept = seen_.kept * rest, .all = seen_.all * rest};
}

double SloRecord::attainment(Time now) const {
  const locks::Lock lock(mutex_);
  const Seen now_seen = seen(now);
  return now_seen.all > 0 ? now_seen.kept / now_seen.all : 1;
}

}  // namespace baton::scheduling
