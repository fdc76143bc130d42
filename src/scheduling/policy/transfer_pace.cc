// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/transfer_pace.h"

#include <algorithm>
#include <utility>

namespace baton::scheduling {
namespace {

// With fewer measurements a rank cannot tell chance from distance.
constexpr std::uint64_t kEnough = 5;
// A measurement counts for at most this multiple of the expectation: a decode worker may have been
// busy.
constexpr double kOutlyingTransfer = 4;

}  // namespace

TransferPace::TransferPace(std::shared_ptr<TransferPace> common,
                           std::shared_ptr<PublishedSpeed> published)
    : common_(std::move(common)), published_(std::move(published)) {}

void TransferPace::took(std::uint64_t tokens, double seconds, Time now) {
  if (common_) common_->took(tokens, seconds, now);
  const auto length = static_cast<double>(tokens);
  const locks::Lock lock(mutex_);
  if (const auto known = published_->load())
    seconds = std::min(seconds, kOutlyingTransfer * known->seconds(length));
  fit_.add({.tokens = length, .seconds = std::max(0.0, seconds)});
  if (fit_.measured() >= kEnough) published_->store(fit_.speed({}), now);
}

}  // namespace baton::scheduling
