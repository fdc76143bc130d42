// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/denial.h"

#include "wire/json_object.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace baton::scheduling {
namespace {

std::string figures(std::string_view policy_class, std::string_view kind, std::uint64_t current,
                    std::uint64_t limit) {
  return fmt::format(R"({{"policy_class":{},"limit_kind":"{}","current":{},"limit":{}}})",
                     wire::json_quote(policy_class), kind, current, limit);
}

std::uint64_t milliseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1000); }

}  // namespace

Denial full(const Refusal& refusal, std::chrono::seconds again) {
  const std::string_view kind = to_string(refusal.kind);
  const std::string why =
      refusal.own > refusal.limit
          ? fmt::format(
                "it can never wait in the queue of class \"{}\": its {} {} are more than "
                "the {} that may wait there; try again later, when a worker has time at "
                "once",
                refusal.policy_class, refusal.own, kind, refusal.limit)
          : fmt::format("the queue of class \"{}\" is full ({} of {} {} wait); try again later",
                        refusal.policy_class, refusal.current, refusal.limit, kind);
  return {static_cast<Turned>(refusal.kind),
          Error(Errc::QueueFull, "every worker for this request is busy, and " + why)
              .with_retry_after(again)
              .with_figures(figures(refusal.policy_class, kind, refusal.current, refusal.limit))};
}

Denial too_long(std::string_view policy_class, double seconds, double limit,
                std::chrono::seconds again) {
  return {Turned::TooLong,
          Error(Errc::QueueFull,
                fmt::format("every worker for this request is busy, and it would have to wait for "
                            "about {:.1f} s in the queue of class \"{}\", where {:.1f} s are the "
                            "most now; try again later",
                            seconds, policy_class, limit))
              .with_retry_after(again)
              .with_figures(
                  figures(policy_class, "wait_ms", milliseconds(seconds), milliseconds(limit)))};
}

Denial too_late(std::string_view policy_class, double seconds, double objective,
                std::chrono::seconds again) {
  return {Turned::Late,
          Error(Errc::SloUnattainable,
                fmt::format("every worker for this request is busy, and its first token would come "
                            "{:.2f} s after its arrival, where the objective of class \"{}\" is "
                            "{:.2f} s (slo.ttft); try again later",
                            seconds, policy_class, objective))
              .with_retry_after(again)
              .with_figures(figures(policy_class, "slo_ttft_ms", milliseconds(seconds),
                                    milliseconds(objective)))};
}

Denial busy(std::string_view policy_class, std::chrono::seconds again) {
  return {Turned::Busy,
          Error(Errc::WorkersBusy,
                fmt::format("every worker for this request is busy, and it may not wait (class "
                            "\"{}\"); try again later, or let it wait",
                            policy_class))
              .with_retry_after(again)};
}

Denial timed_out(std::string_view policy_class, std::size_t waiting, std::chrono::seconds again) {
  return {Turned::Timeout,
          Error(Errc::QueueTimeout,
                fmt::format("no worker had time for this request before its patience was over; "
                            "{} requests of class \"{}\" wait; try again later",
                            waiting, policy_class))
              .with_retry_after(again)};
}

}  // namespace baton::scheduling
