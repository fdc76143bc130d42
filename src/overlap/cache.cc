// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "overlap/cache.h"

namespace baton::overlap {

std::string_view to_string(Trusted trusted) {
  switch (trusted) {
    case Trusted::Nothing:
      return "nothing";
    case Trusted::Events:
      return "events";
    case Trusted::Decisions:
      break;
  }
  return "decisions";
}

std::string_view to_string(FeedHealth health) {
  switch (health) {
    case FeedHealth::None:
      return "none";
    case FeedHealth::Waiting:
      return "waiting";
    case FeedHealth::Live:
      return "live";
    case FeedHealth::Silent:
      return "silent";
    case FeedHealth::Broken:
      break;
  }
  return "broken";
}

Trusted Cache::trusted(config::IndexSource source) const {
  switch (source) {
    case config::IndexSource::Off:
      return Trusted::Nothing;
    case config::IndexSource::Decisions:
      return Trusted::Decisions;
    case config::IndexSource::Events:
    case config::IndexSource::Auto:
      break;
  }
  if (health() == FeedHealth::Live) return believed() ? Trusted::Events : Trusted::Nothing;
  return source == config::IndexSource::Auto ? Trusted::Decisions : Trusted::Nothing;
}

bool Cache::compare(const TruthMeter::Sample& sample) {
  const std::lock_guard lock(mutex_);
  predicted_tokens_ += sample.least;
  reported_tokens_ += sample.reported;
  meter_.add(sample);
  return believed_.exchange(meter_.believed()) != meter_.believed();
}

bool Cache::expect_events(Clock::time_point sent, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (events_due_) return false;
  events_due_ = Due{.sent = sent, .since = now};
  return true;
}

std::optional<Clock::time_point> Cache::overdue_since(std::optional<Clock::time_point> last) {
  const std::lock_guard lock(mutex_);
  if (events_due_ && last && *last >= events_due_->sent) events_due_.reset();
  if (!events_due_) return std::nullopt;
  return events_due_->since;
}

Cache::Truth Cache::truth() const {
  const std::lock_guard lock(mutex_);
  return {.samples = meter_.samples(),
          .error = meter_.error(),
          .predicted_tokens = predicted_tokens_,
          .reported_tokens = reported_tokens_};
}

}  // namespace baton::overlap
