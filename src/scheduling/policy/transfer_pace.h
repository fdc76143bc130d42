// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "scheduling/policy/pace.h"
#include "scheduling/policy/published_speed.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

namespace baton::scheduling {

// Role. Learns the time from the end of a prompt on one prefill rank to the first token of its
//   decode worker: a part for each hand-off and a part for each token.
// Confinement. Any thread; a lock for a few sums, and readers take none.
// Lifetime. As long as the rank, or as any of those that share it as the common one.
// Invariants. A difference from the common pace within chance counts as none: equal ranks are
//   equally far away.
class TransferPace {
 public:
  // `common`: the pace of all ranks of its kind; null: this is that one, or it has no siblings. The
  // learned speed is written to `published`.
  explicit TransferPace(
      std::shared_ptr<TransferPace> common = nullptr,
      std::shared_ptr<PublishedSpeed> published = std::make_shared<PublishedSpeed>());

  void took(std::uint64_t tokens, double seconds, Time now);
  // Expected time for a prompt of so many tokens; 0 if nothing is known.
  double seconds(double tokens, Time now) const {
    return seconds(*published_, common_.get(), tokens, now);
  }
  // The same of one that has published `own`, if anything.
  static double seconds(const PublishedSpeed& own, const TransferPace* common, double tokens,
                        Time now);

 private:
  // Part of what is common that is taken for chance.
  static constexpr double kChance = 0.25;

  const std::shared_ptr<TransferPace> common_;
  const std::shared_ptr<PublishedSpeed> published_;

  locks::Mutex mutex_;
  SpeedFit fit_ GUARDED_BY(mutex_);
};

// Here, since it is asked of thousands of ranks for each prompt.
inline double TransferPace::seconds(const PublishedSpeed& own, const TransferPace* common,
                                    double tokens, Time now) {
  const auto usually = common != nullptr ? common->published_->load() : std::nullopt;
  const double usual = usually ? usually->seconds(tokens) : 0;
  const auto measured = own.load();
  if (!measured) return usual;
  const double seconds = measured->seconds(tokens);
  if (std::abs(seconds - usual) <= kChance * usual) return usual;
  return common != nullptr ? usual + own.trust(now) * (seconds - usual) : seconds;
}

}  // namespace baton::scheduling
