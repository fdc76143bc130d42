// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/rank_stats.h"

#include <array>

namespace baton::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kFirstToken{0.001, 0.005, 0.01, 0.02, 0.04, 0.06,  0.08, 0.1,
                                 0.25,  0.5,   0.75, 1.0,  2.5,  5.0,   7.5,  10.0,
                                 20.0,  40.0,  80.0, 160., 640., 2560.0};
constexpr std::array kBetweenTokens{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                    0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kRequest{0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                              5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                              60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr std::array kTokens{1.0,   2.0,   5.0,    10.0,   20.0,   50.0,    100.0,   200.0,
                             500.0, 1000., 2000.0, 5000.0, 10000., 20000.0, 50000.0, 100000.0};
constexpr std::array kStepTokens{1.,   8.,    16.,   32.,   64.,   128.,  256.,
                                 512., 1024., 2048., 4096., 8192., 16384.};
constexpr std::array kChoices{1.0, 2.0, 5.0, 10.0, 20.0};
constexpr std::array kPreemptions{1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0};
constexpr std::array kTransfer{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0};
constexpr std::array kTransferPost{0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                   0.2,   0.3,   0.5,  0.75,  1.0,  5.0};
constexpr std::array kTransferBytes{2048.,      8192.,      32768.,      131072.,
                                    524288.,    2097152.,   8388608.,    33554432.,
                                    134217728., 536870912., 2147483648., 8589934592.};
constexpr std::array kDescriptors{10.,  20.,   30.,   50.,   75.,    100.,   200.,
                                  400., 1000., 2000., 4000., 10000., 20000., 50000.};
// KV bytes of one token in all layers of a medium-sized model.
constexpr std::uint64_t kBytesOfToken = 131072;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

RankStats::RankStats()
    : first_token_seconds(kFirstToken),
      between_tokens_seconds(kBetweenTokens),
      per_token_seconds(kBetweenTokens),
      whole_seconds(kRequest),
      queue_seconds(kRequest),
      inference_seconds(kRequest),
      prefill_seconds(kRequest),
      decode_seconds(kRequest),
      prompt_tokens(kTokens),
      generation_tokens(kTokens),
      most_generation_tokens(kTokens),
      max_tokens(kTokens),
      computed_tokens(kTokens),
      step_tokens(kStepTokens),
      choices(kChoices),
      preemptions(kPreemptions),
      transfer_seconds(kTransfer),
      transfer_post_seconds(kTransferPost),
      transferred_bytes(kTransferBytes),
      transfer_descriptors(kDescriptors) {}

void RankStats::token(SequenceTimes& times, bool first) {
  const auto now = Clock::now();
  if (first) {
    times.first_token = now;
    first_token_seconds.observe(seconds(now - times.arrived));
  } else {
    between_tokens_seconds.observe(seconds(now - times.last_token));
  }
  times.last_token = now;
}

// Nothing is known of the time in the queue: it counts as part of the prefill.
void RankStats::finished(const SequenceTimes& times, const SequenceSize& size, Finish reason) {
  const double prefill = seconds(times.first_token - times.arrived);
  const double decode = seconds(times.last_token - times.first_token);
  whole_seconds.observe(prefill + decode);
  inference_seconds.observe(prefill + decode);
  queue_seconds.observe(0);
  prefill_seconds.observe(prefill);
  decode_seconds.observe(decode);
  per_token_seconds.observe(
      size.output_tokens > 1 ? decode / static_cast<double>(size.output_tokens - 1) : 0);
  prompt_tokens.observe(static_cast<double>(size.prompt_tokens));
  generation_tokens.observe(static_cast<double>(size.output_tokens));
  max_tokens.observe(static_cast<double>(size.most_tokens));
  computed_tokens.observe(
      static_cast<double>(size.prompt_tokens - std::min(size.cached_tokens, size.prompt_tokens)));
  most_generation_tokens.observe(static_cast<double>(size.output_tokens));
  preemptions.observe(0);
  ++(reason == Finish::Length ? cut_by_length : stopped);
}

void RankStats::request(std::uint32_t n) { choices.observe(n); }

void RankStats::fetched(double seconds, std::uint64_t tokens, std::uint64_t blocks) {
  external_tokens += tokens;
  transfer_seconds.observe(seconds);
  transfer_post_seconds.observe(0);
  transferred_bytes.observe(static_cast<double>(tokens * kBytesOfToken));
  transfer_descriptors.observe(static_cast<double>(blocks));
}

}  // namespace baton::sim
