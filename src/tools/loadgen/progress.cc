// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/loadgen/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kBetweenLines{5};
constexpr std::size_t kBarWidth = 20;

double seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

double Progress::share(const Status& now) const {
  double share = 0;
  if (goal_.requests && *goal_.requests > 0)
    share = static_cast<double>(now.ended) / static_cast<double>(*goal_.requests);
  if (goal_.duration && goal_.duration->count() > 0)
    share = std::max(share, seconds(now.elapsed) / seconds(*goal_.duration));
  return std::clamp(share, 0.0, 1.0);
}

std::string Progress::figures(const Status& now) const {
  const std::string of = goal_.requests ? fmt::format("/{}", *goal_.requests) : "";
  return fmt::format(
      "{:.0f} s  {}{} done  {:.1f}/s  {} running  TTFT p50 {:.0f} p99 {:.0f} ms  {} refused  {} "
      "failed",
      seconds(now.elapsed), now.ended, of, rate_, now.in_flight, now.ttft_p50_ms, now.ttft_p99_ms,
      now.refused, now.failed);
}

std::string Progress::tell(const Status& now) {
  if (style_ == Style::Quiet || now.elapsed < next_) return {};
  const nanoseconds period =
      style_ == Style::Bar ? nanoseconds(kRedraw) : nanoseconds(kBetweenLines);
  next_ = now.elapsed + period;
  const double passed = seconds(now.elapsed - last_.elapsed);
  if (passed > 0) {
    const double rate = static_cast<double>(now.ended - last_.ended) / passed;
    // A bar is drawn too often for its figure to stand still by itself.
    const double weight = style_ == Style::Bar && last_.elapsed.count() > 0 ? 0.2 : 1;
    rate_ += weight * (rate - rate_);
  }
  last_ = now;
  if (style_ == Style::Lines) return now.elapsed < kBetweenLines ? "" : figures(now) + "\n";
  const auto filled = static_cast<std::size_t>(share(now) * static_cast<double>(kBarWidth));
  std::string line =
      fmt::format("[{}{}] {:3.0f} %  {}", std::string(filled, '#'),
                  std::string(kBarWidth - filled, '.'), share(now) * 100, figures(now));
  if (width_ > 1 && line.size() >= width_) line.resize(width_ - 1);
  return "\r" + line + "\x1b[K";
}

std::string Progress::end() const { return style_ == Style::Bar ? "\r\x1b[K" : ""; }

}  // namespace baton::loadgen
