// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/pace.h"

#include "scheduling/policy/prefill_backlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using std::chrono::milliseconds;

Clock::duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// A rank of a known speed and the router's clock.
class Rank {
 public:
  explicit Rank(PrefillSpeed truth, std::shared_ptr<SiblingPace> siblings = nullptr)
      : truth_(truth), pace_(std::move(siblings)) {}

  void set_truth(PrefillSpeed truth) { truth_ = truth; }
  std::uint64_t any_length() {
    return std::uniform_int_distribution<std::uint64_t>(100, 20'000)(random_);
  }

  void idle(double seconds) { now_ += in_seconds(seconds); }
  void compute(std::uint64_t tokens) { compute_queued({tokens}); }
  // All are sent at once and answered one after the other.
  void compute_queued(const std::vector<std::uint64_t>& prompts) {
    for (std::size_t i = 0; i < prompts.size(); ++i) pace_.sent(now_);
    for (const std::uint64_t tokens : prompts) {
      now_ += in_seconds(truth_.seconds(static_cast<double>(tokens)));
      pace_.computed(now_, tokens);
    }
  }
  // All are computed in one step, which has the costs of one prompt.
  void compute_together(const std::vector<std::uint64_t>& prompts) {
    double sum = 0;
    for (const std::uint64_t tokens : prompts) {
      pace_.sent(now_);
      sum += static_cast<double>(tokens);
    }
    now_ += in_seconds(truth_.seconds(sum));
    for (const std::uint64_t tokens : prompts) {
      now_ += std::chrono::microseconds(50);
      pace_.computed(now_, tokens);
    }
  }
  void compute_some(int prompts) {
    for (int i = 0; i < prompts; ++i) {
      compute(any_length());
      idle(0.1);
    }
  }

  Pace& pace() { return pace_; }
  Time now() const { return now_; }
  double seconds(double tokens) const { return pace_.speed(now_).seconds(tokens); }
  // How far off the forecast for such a prompt is, as a share of the truth.
  double error(double tokens) const {
    return std::abs(seconds(tokens) / truth_.seconds(tokens) - 1);
  }

 private:
  PrefillSpeed truth_;
  Pace pace_;
  Time now_{std::chrono::hours(1)};
  std::mt19937_64 random_{7};
};

constexpr PrefillSpeed kFast{.seconds_per_step = 0.005, .seconds_per_token = 1.0 / 50'000};
constexpr PrefillSpeed kHalf{.seconds_per_step = 0.010, .seconds_per_token = 1.0 / 25'000};
constexpr PrefillSpeed kSlow{.seconds_per_step = 0.050, .seconds_per_token = 1.0 / 4'000};

TEST(PaceTest, KnowsNothingAtFirst) {
  const Pace pace;
  EXPECT_FALSE(pace.measured());
  EXPECT_EQ(pace.speed(Time{}), kUnmeasuredSpeed);
}

TEST(PaceTest, LearnsWhatAPromptAndWhatATokenCosts) {
  for (const PrefillSpeed truth : {kFast, kHalf, kSlow}) {
    Rank rank(truth);
    rank.compute_some(40);
    EXPECT_TRUE(rank.pace().measured());
    EXPECT_NEAR(rank.pace().speed(rank.now()).seconds_per_token / truth.seconds_per_token, 1, 0.02);
    EXPECT_NEAR(rank.pace().speed(rank.now()).seconds_per_step / truth.seconds_per_step, 1, 0.1);
  }
}

TEST(PaceTest, IsNearAfterAFewPrompts) {
  Rank rank(kSlow);
  rank.compute_some(8);
  EXPECT_LT(rank.error(5'000), 0.1);
}

TEST(PaceTest, TimeInTheQueueIsNotTakenForWork) {
  Rank rank(kFast);
  for (int round = 0; round < 6; ++round) {
    std::vector<std::uint64_t> prompts;
    for (int i = 0; i < 10; ++i) prompts.push_back(rank.any_length());
    rank.compute_queued(prompts);
    rank.idle(5);
  }
  EXPECT_LT(rank.error(500), 0.1);
  EXPECT_LT(rank.error(20'000), 0.05);
}

TEST(PaceTest, PromptsThatShareAStepShareItsTime) {
  Rank rank(kFast);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::uint64_t> prompts;
    for (int i = 0; i < 4; ++i) prompts.push_back(rank.any_length());
    rank.compute_together(prompts);
    rank.idle(1);
  }
  EXPECT_NEAR(rank.pace().speed(rank.now()).seconds_per_token / kFast.seconds_per_token, 1, 0.1);
}

TEST(PaceTest, TimeWithNothingToDoDoesNotCount) {
  Rank rank(kFast);
  for (int i = 0; i < 30; ++i) {
    rank.compute(2'000);
    rank.idle(60);
  }
  EXPECT_LT(rank.error(2'000), 0.05);
}

TEST(PaceTest, PromptsOfOneLengthAreForecastRight) {
  Rank rank(kSlow);
  for (int i = 0; i < 60; ++i) rank.compute(3'000);
  EXPECT_LT(rank.error(3'000), 0.02);
}

TEST(PaceTest, PromptsThatAreAllCachedCostSomethingToo) {
  Rank rank(kSlow);
  for (int i = 0; i < 60; ++i) rank.compute(0);
  EXPECT_LT(rank.error(0), 0.05);
  EXPECT_GT(rank.pace().speed(rank.now()).seconds_per_token, 0);
}

TEST(PaceTest, ANewRankBeginsWithWhatItsSiblingsMeasured) {
  const auto siblings = std::make_shared<SiblingPace>();
  Rank old(kSlow, siblings);
  old.compute_some(40);
  const Rank fresh(kSlow, siblings);
  EXPECT_LT(fresh.error(5'000), 0.1);
}

TEST(PaceTest, LearnsThatARankHasHalfTheSpeedOfItsSiblings) {
  const auto siblings = std::make_shared<SiblingPace>();
  std::vector<std::unique_ptr<Rank>> fast;
  for (int i = 0; i < 3; ++i) fast.push_back(std::make_unique<Rank>(kFast, siblings));
  Rank half(kHalf, siblings);
  for (int round = 0; round < 20; ++round) {
    for (const auto& rank : fast) rank->compute_some(1);
    half.compute_some(1);
  }
  for (const auto& rank : fast) EXPECT_LT(rank->error(8'000), 0.05);
  EXPECT_LT(half.error(8'000), 0.05);
}

TEST(PaceTest, FollowsAChangeOfSpeed) {
  Rank rank(kFast);
  for (const PrefillSpeed truth : {kFast, kSlow, kHalf, kFast, kSlow}) {
    rank.set_truth(truth);
    rank.compute_some(100);
    EXPECT_LT(rank.error(8'000), 0.1);
  }
}

// A rank that throttles gets requests by its old speed until the new one is known.
TEST(PaceTest, AFewPromptsShowARankThatThrottles) {
  const PrefillSpeed throttled{.seconds_per_step = 4 * kHalf.seconds_per_step,
                               .seconds_per_token = 4 * kHalf.seconds_per_token};
  Rank rank(kHalf);
  rank.compute_some(40);
  rank.set_truth(throttled);
  rank.compute_some(4);
  EXPECT_LT(rank.error(5'000), 0.25);
  rank.compute_some(40);
  rank.set_truth(kHalf);
  rank.compute_some(5);
  EXPECT_LT(rank.error(5'000), 0.35) << "and that it has recovered";
}

TEST(PaceTest, OneOutlierMovesItLittle) {
  Rank rank(kFast);
  rank.compute_some(40);
  const double before = rank.seconds(8'000);
  rank.set_truth({.seconds_per_step = 30, .seconds_per_token = 0});
  rank.compute(8'000);
  EXPECT_LT(rank.seconds(8'000), 2 * before);
}

// A worker compiles at its first request, or its machine stands still: six short prompts, one of which
// takes two seconds.
TEST(PaceTest, ASlowFirstPromptSaysLittleOfLongOnes) {
  const auto siblings = std::make_shared<SiblingPace>();
  Rank well(kFast, siblings);
  Rank stalled({.seconds_per_step = 2, .seconds_per_token = 0}, siblings);
  stalled.compute(10);
  for (int i = 0; i < 5; ++i) well.compute(10);
  EXPECT_LT(stalled.seconds(4'000), 2 * well.seconds(4'000));
}

TEST(PaceTest, AFloorOfStepsIsLearnedFromBatches) {
  for (const double floor : {0.01, 0.06, 0.3}) {
    Rank rank({.seconds_per_step = floor, .seconds_per_token = 1.0 / 20'000});
    std::mt19937_64 random(5);
    for (int round = 0; round < 30; ++round) {
      std::vector<std::uint64_t> prompts(1 + random() % 8);
      for (std::uint64_t& tokens : prompts) tokens = 20 + random() % 400;
      rank.compute_together(prompts);
    }
    EXPECT_LT(rank.error(100), 0.1) << floor;
    EXPECT_LT(rank.error(4'000), 0.2) << floor;
  }
}

TEST(PaceTest, ARankAHundredTimesSlowerThanGuessedIsKnownAfterAFew) {
  Rank rank({.seconds_per_step = 0.5, .seconds_per_token = 1.0 / 200});
  rank.compute_some(10);
  EXPECT_LT(rank.error(5'000), 0.15);
}

// Whatever happened to it, and however long: nobody is written off.
TEST(PaceTest, ARankThatWasSlowIsTakenForUsualAgain) {
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 50; ++trial) {
    const auto siblings = std::make_shared<SiblingPace>();
    Rank well(kFast, siblings);
    Rank bad({.seconds_per_step = std::uniform_real_distribution(0.0, 30.0)(random),
              .seconds_per_token = std::uniform_real_distribution(0.0, 0.1)(random)},
             siblings);
    bad.compute_some(1 + static_cast<int>(random() % 30));
    while (well.now() < bad.now()) well.compute_some(1);
    well.compute_some(100);
    const Time later = bad.now() + std::chrono::seconds(12);
    EXPECT_LT(bad.pace().speed(later).seconds(2'000), 1.5 * well.seconds(2'000));
  }
}

TEST(PaceTest, ALostPromptTeachesNothing) {
  Rank rank(kFast);
  rank.compute_some(40);
  const PrefillSpeed before = rank.pace().speed(rank.now());
  // What came behind it has an unknown part of the time.
  rank.pace().sent(rank.now());
  rank.pace().sent(rank.now());
  rank.idle(10);
  rank.pace().lost(rank.now());
  rank.idle(10);
  rank.pace().computed(rank.now(), 10);
  EXPECT_EQ(rank.pace().speed(rank.now()), before);
  rank.idle(1);
  rank.compute_some(40);
  EXPECT_LT(rank.error(8'000), 0.05);
}

TEST(PaceTest, ClockThatStandsStillIsNoSpeedWithoutEnd) {
  Pace pace;
  const Time now{std::chrono::hours(1)};
  for (int i = 0; i < 500; ++i) {
    pace.sent(now);
    pace.computed(now - milliseconds(i), 1'000);
  }
  const PrefillSpeed speed = pace.speed(now);
  EXPECT_TRUE(std::isfinite(speed.seconds(1e6)));
  EXPECT_GT(speed.seconds_per_token, 0);
  EXPECT_GE(speed.seconds_per_step, 0);
}

TEST(PaceTest, NeverNegativeWhateverIsMeasured) {
  std::mt19937_64 random(3);
  Pace pace;
  Time now{std::chrono::hours(1)};
  for (int i = 0; i < 5'000; ++i) {
    pace.sent(now);
    now += milliseconds(std::uniform_int_distribution<>(0, 3'000)(random));
    if (random() % 4 == 0) pace.sent(now), pace.lost(now);
    pace.computed(now, random() % 30'000);
    const PrefillSpeed speed = pace.speed(now);
    ASSERT_GE(speed.seconds_per_step, 0);
    ASSERT_GT(speed.seconds_per_token, 0);
    ASSERT_TRUE(std::isfinite(speed.seconds(1e6)));
  }
}

TEST(PaceTest, ManyThreadsMeasureAndRead) {
  const auto siblings = std::make_shared<SiblingPace>();
  Pace pace(siblings);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      EXPECT_GT(pace.speed(Time{std::chrono::hours(1)}).seconds_per_token, 0);
      EXPECT_GT(siblings->speed().seconds_per_token, 0);
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&] {
      Time now{std::chrono::hours(1)};
      for (int i = 0; i < 2'000; ++i) {
        pace.sent(now);
        now += milliseconds(20);
        pace.computed(now, 1'000);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_TRUE(pace.measured());
}

// An engine with chunked prefill: a step takes up to `capacity` tokens of its prompts in their order, so the
// last prompt of a full step is completed in a later one.
class ChunkedEngine {
 public:
  struct Options {
    PrefillSpeed truth;
    std::uint64_t capacity = 1024;
    std::function<std::uint64_t(std::mt19937_64&)> length;
    double noise = 0.05;      // of the time of a step
    double latency = 0.0005;  // from the router to the engine
    std::uint64_t seed = 1;
  };

  explicit ChunkedEngine(Options options) : options_(std::move(options)), random_(options_.seed) {}

  // All in one moment, or one soon after the other.
  void burst(int prompts, double apart = 0) {
    for (int i = 0; i < prompts; ++i) send_at(now_ + apart * i);
    run();
  }
  // `load`: share of what the engine computes in full steps.
  void poisson(int prompts, double load) {
    double mean = 0;
    for (int i = 0; i < 1000; ++i) mean += static_cast<double>(options_.length(random_)) / 1000;
    std::exponential_distribution gap(load / (mean * full_step_per_token()));
    double time = now_;
    for (int i = 0; i < prompts; ++i) send_at(time += gap(random_));
    run();
  }

  // Each client sends its next prompt when it has got an answer.
  void closed_loop(int clients, int prompts) {
    to_come_ = prompts - clients;
    burst(clients);
  }

  PrefillSpeed learned() const { return pace_.speed(at(now_)); }
  // What it takes for a queue of prompts, by what was learned and in truth.
  double forecast_queue(const std::vector<std::uint64_t>& queue) const {
    const PrefillSpeed speed = learned();
    PrefillBacklog backlog;
    std::deque<PrefillBacklog::Prompt> prompts;
    for (const std::uint64_t tokens : queue) {
      PrefillBacklog::Prompt& prompt = prompts.emplace_back();
      prompt.tokens = static_cast<std::int64_t>(tokens);
      prompt.duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
          in_seconds(speed.seconds_of(static_cast<double>(tokens))));
      prompt.step =
          std::chrono::duration_cast<std::chrono::nanoseconds>(in_seconds(speed.seconds_per_step));
      backlog.add(prompt, at(0));
    }
    return backlog.seconds(at(0));
  }
  double true_queue(const std::vector<std::uint64_t>& queue) const {
    std::uint64_t tokens = 0;
    for (const std::uint64_t each : queue) tokens += each;
    const auto steps = (tokens + options_.capacity - 1) / options_.capacity;
    return static_cast<double>(steps) * options_.truth.seconds_per_step +
           options_.truth.seconds_of(static_cast<double>(tokens));
  }
  double full_step_per_token() const {
    return options_.truth.seconds_per_token +
           options_.truth.seconds_per_step / static_cast<double>(options_.capacity);
  }
  std::vector<std::uint64_t> some_lengths(int prompts) {
    std::vector<std::uint64_t> lengths;
    for (int i = 0; i < prompts; ++i) lengths.push_back(options_.length(random_));
    return lengths;
  }

 private:
  struct Prompt {
    double sent = 0;
    std::uint64_t tokens = 0;
    std::uint64_t left = 0;
  };

  static Time at(double seconds) { return Time(std::chrono::hours(1)) + in_seconds(seconds); }
  void send_at(double time) {
    const std::uint64_t tokens = options_.length(random_);
    const auto after = [](double sent, const Prompt& prompt) { return sent < prompt.sent; };
    coming_.insert(std::upper_bound(coming_.begin(), coming_.end(), time, after),
                   {.sent = time, .tokens = tokens, .left = tokens});
  }
  // Tells of what was sent until then, and gives it to the engine once it has arrived there.
  void advance_to(double time) {
    for (; told_ < coming_.size() && coming_[told_].sent <= time; ++told_)
      pace_.sent(at(coming_[told_].sent));
    for (; told_ > 0 && coming_.front().sent + options_.latency <= time; --told_) {
      waiting_.push_back(coming_.front());
      coming_.pop_front();
    }
    now_ = time;
  }
  void run() {
    while (!coming_.empty() || !waiting_.empty()) {
      if (waiting_.empty()) advance_to(std::max(now_, coming_.front().sent + options_.latency));
      step();
    }
    now_ += 1;
  }
  void step() {
    std::uint64_t taken = 0;
    std::vector<std::uint64_t> completed;
    while (!waiting_.empty() && taken < options_.capacity) {
      Prompt& first = waiting_.front();
      const std::uint64_t part = std::min(first.left, options_.capacity - taken);
      taken += part;
      if ((first.left -= part) > 0) break;
      completed.push_back(first.tokens);
      waiting_.pop_front();
    }
    const double noise = std::normal_distribution(1.0, options_.noise)(random_);
    advance_to(now_ + noise * options_.truth.seconds(static_cast<double>(taken)));
    for (const std::uint64_t tokens : completed) {
      pace_.computed(at(now_), tokens);
      advance_to(now_ + 30e-6);
      if (to_come_ > 0) {
        --to_come_;
        send_at(now_ + std::exponential_distribution(1000.0)(random_));
      }
    }
  }

  const Options options_;
  Pace pace_;
  double now_ = 0;
  std::deque<Prompt>
      coming_;  // in the order of `sent`; the first `told_` are sent, and on their way
  std::size_t told_ = 0;
  std::deque<Prompt> waiting_;  // at the engine
  std::mt19937_64 random_;
  int to_come_ = 0;
};

std::uint64_t lognormal_length(std::mt19937_64& random) {
  return static_cast<std::uint64_t>(
      std::clamp(std::lognormal_distribution(6.0, 0.8)(random), 50.0, 2000.0));
}
std::uint64_t uniform_length(std::mt19937_64& random) {
  return std::uniform_int_distribution<std::uint64_t>(50, 2000)(random);
}

struct ChunkedCase {
  std::string name;
  ChunkedEngine::Options options;
};
std::vector<ChunkedCase> chunked_cases() {
  std::vector<ChunkedCase> cases;
  for (const std::uint64_t capacity : {1024U, 8192U})
    for (const double floor : {0.001, 0.01, 0.1})
      for (const double per_token : {130e-6, 30e-6})
        for (const bool uniform : {false, true})
          for (const std::uint64_t seed : {1U, 2U, 3U}) {
            cases.push_back(
                {.name = "capacity " + std::to_string(capacity) + ", floor " +
                         std::to_string(floor) + " s, per token " + std::to_string(per_token) +
                         (uniform ? " s, uniform, seed " : " s, log-normal, seed ") +
                         std::to_string(seed),
                 .options = {.truth = {.seconds_per_step = floor, .seconds_per_token = per_token},
                             .capacity = capacity,
                             .length = uniform ? uniform_length : lognormal_length,
                             .seed = seed}});
          }
  return cases;
}

// The floor of a full step may count for its tokens; so may a second floor of a prompt that fills a step.
void expect_near(const ChunkedEngine& engine, PrefillSpeed truth) {
  const PrefillSpeed learned = engine.learned();
  EXPECT_LT(learned.seconds_per_step,
            truth.seconds_per_step + std::max(0.01, 0.35 * truth.seconds_per_step));
  EXPECT_GT(learned.seconds_per_token, 0.75 * truth.seconds_per_token);
  EXPECT_LT(learned.seconds_per_token, 1.25 * engine.full_step_per_token());
}

TEST(PaceTest, ABurstIsNotTakenForAFloorOfSteps) {
  for (const ChunkedCase& one : chunked_cases()) {
    SCOPED_TRACE(one.name);
    ChunkedEngine engine(one.options);
    engine.burst(200, one.options.seed == 1 ? 0 : 1e-5);
    expect_near(engine, one.options.truth);
    const auto queue = engine.some_lengths(40);
    EXPECT_NEAR(engine.forecast_queue(queue) / engine.true_queue(queue), 1, 0.25);
  }
}

TEST(PaceTest, AtFullLoadTheFloorAndTheQueueAreForecastRight) {
  for (const ChunkedCase& one : chunked_cases()) {
    SCOPED_TRACE(one.name);
    ChunkedEngine engine(one.options);
    engine.poisson(400, 1.0);
    expect_near(engine, one.options.truth);
    const auto queue = engine.some_lengths(40);
    EXPECT_NEAR(engine.forecast_queue(queue) / engine.true_queue(queue), 1, 0.25);
  }
}

TEST(PaceTest, WhereSomeStepsAreNotFullTheFloorIsLearnedFromThem) {
  for (const ChunkedCase& one : chunked_cases()) {
    SCOPED_TRACE(one.name);
    ChunkedEngine engine(one.options);
    engine.poisson(400, 0.6);
    expect_near(engine, one.options.truth);
    const double floor = one.options.truth.seconds_per_step;
    EXPECT_GT(engine.learned().seconds_per_step, floor - std::max(0.01, 0.65 * floor));
    EXPECT_NEAR(engine.learned().seconds(500) / one.options.truth.seconds(500), 1, 0.25);
  }
}

std::uint64_t short_length(std::mt19937_64& random) {
  return std::uniform_int_distribution<std::uint64_t>(20, 80)(random);
}

TEST(PaceTest, TheFloorThatManyShortPromptsShareIsLearned) {
  for (const double floor : {0.05, 0.1, 0.3}) {
    SCOPED_TRACE(floor);
    const ChunkedEngine::Options options{
        .truth = {.seconds_per_step = floor, .seconds_per_token = 30e-6},
        .capacity = 8192,
        .length = short_length,
        .latency = 0.003};
    for (const int clients : {4, 16, 64}) {
      ChunkedEngine engine(options);
      engine.closed_loop(clients, 100 * clients);
      EXPECT_NEAR(engine.learned().seconds_per_step / floor, 1, 0.35) << clients;
    }
    // Some of them are on their way when a step begins, and miss it.
    ChunkedEngine engine(options);
    engine.poisson(4000, 0.8);
    EXPECT_NEAR(engine.learned().seconds_per_step / floor, 1, 0.35);
  }
}

}  // namespace
}  // namespace baton::scheduling
