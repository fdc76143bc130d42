// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/prefill_backlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <random>
#include <thread>
#include <vector>

namespace baton::scheduling {
namespace {

using namespace std::chrono_literals;
using Prompt = PrefillBacklog::Prompt;

constexpr Time kStart{1h};

Prompt modelled(std::int64_t tokens, std::chrono::nanoseconds duration) {
  Prompt prompt;
  prompt.tokens = tokens;
  prompt.duration = duration;
  return prompt;
}

Prompt unmodelled(std::int64_t tokens) {
  Prompt prompt;
  prompt.tokens = tokens;
  return prompt;
}

TEST(PrefillBacklog, IsEmptyAtFirst) {
  const PrefillBacklog backlog;
  EXPECT_EQ(backlog.tokens(), 0);
  EXPECT_EQ(backlog.tokens(kStart), 0);
  EXPECT_EQ(backlog.seconds(kStart), 0);
}

TEST(PrefillBacklog, TakesElapsedTimeOffAModelledPrompt) {
  PrefillBacklog backlog;
  Prompt prompt = modelled(100, 10s);
  backlog.add(prompt, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart), 100);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 2500ms), 75);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 2500ms), 7.5);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart - 1s), 100);  // who asks may be a little behind
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart - 1s), 10);
  EXPECT_EQ(backlog.tokens(), 100);  // as booked
  backlog.remove(prompt, kStart + 5s);
  EXPECT_EQ(backlog.tokens(), 0);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 5s), 0);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 5s), 0);
}

TEST(PrefillBacklog, PromptsOfOneStepShareItsFloor) {
  PrefillBacklog backlog;
  const auto prompt_of_step = [] {
    Prompt prompt = modelled(100, 1s);
    prompt.step = 10s;
    return prompt;
  };
  Prompt first = prompt_of_step();
  Prompt second = prompt_of_step();
  Prompt third = prompt_of_step();
  backlog.add(first, kStart);
  EXPECT_FALSE(backlog.line(kStart).open);  // who comes next is not in the step that runs
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart), 11);
  backlog.add(second, kStart + 1s);
  EXPECT_TRUE(backlog.line(kStart + 1s).open);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 1s), 10 + 11);
  backlog.add(third, kStart + 1s);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 1s), 10 + 11 + 1);
  backlog.remove(first, kStart + 11s);
  EXPECT_FALSE(backlog.line(kStart + 11s).open);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 11s), 12);
  Prompt fourth = prompt_of_step();
  backlog.add(fourth, kStart + 11s);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 11s), 12 + 11);
  for (Prompt* const prompt : {&second, &third, &fourth}) backlog.remove(*prompt, kStart + 30s);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 30s), 0);
}

TEST(PrefillBacklog, NeverFallsBelowZero) {
  PrefillBacklog backlog;
  Prompt prompt = modelled(100, 10s);
  backlog.add(prompt, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 11s), 0);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 10s), 0);
  backlog.remove(prompt, kStart + 11s);
}

TEST(PrefillBacklog, OfARankThatStandsStillDoesNotLookDone) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 1s);
  backlog.add(first, kStart);
  // It is late, and will be as late again.
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 61s), 60);
  // What comes now has not begun, however late the first is.
  Prompt second = modelled(500, 5s);
  backlog.add(second, kStart + 61s);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 61s), 5);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 61s), 500);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 70s), 4);
  backlog.remove(first, kStart + 70s);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 70s), 5);
  backlog.remove(second, kStart + 70s);
}

TEST(PrefillBacklog, LetsTimeBeyondTheOldestCountForTheNextWhereAllAreModelled) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = modelled(60, 3s);
  backlog.add(first, kStart);
  backlog.add(second, kStart + 2s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 5s), 110);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 5s), 8);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 12s), 40);  // at the pace of the oldest
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 12s), 1);
  backlog.remove(first, kStart + 12s);
  backlog.remove(second, kStart + 12s);
}

TEST(PrefillBacklog, DoesNotDecayWhatIsNotModelled) {
  PrefillBacklog backlog;
  Prompt prompt = unmodelled(100);
  backlog.add(prompt, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 1h), 100);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart), 0);
  backlog.remove(prompt, kStart);
}

TEST(PrefillBacklog, DecaysOnlyTheOldestWhereSomeAreNotModelled) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = unmodelled(60);
  Prompt third = modelled(30, 3s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  backlog.add(third, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 5s), 140);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 5s), 8);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 20s), 90);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 20s), 13);  // ten seconds late
  // The oldest is one that is not modelled: nothing decays.
  backlog.remove(first, kStart + 20s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 1h), 90);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 1h), 3);
  backlog.remove(second, kStart + 1h);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 1h + 1s), 20);
  backlog.remove(third, kStart + 1h);
}

TEST(PrefillBacklog, StartsTheNextOneWhenTheOldestEnds) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = modelled(40, 8s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  backlog.remove(first, kStart + 3s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 3s), 40);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 5s), 30);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 5s), 6);
  backlog.remove(second, kStart + 5s);
}

TEST(PrefillBacklog, StaysWhereItWasWhenAModelledOneOvertakesTheOldest) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = modelled(40, 4s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 6s), 80);
  backlog.remove(second, kStart + 6s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 6s), 80);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 6s), 8);
  backlog.remove(first, kStart + 6s);
}

TEST(PrefillBacklog, DoesNotUndoMoreProgressThanThereWas) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = modelled(80, 8s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  backlog.remove(second, kStart + 6s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 6s), 100);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 7s), 90);
  backlog.remove(first, kStart + 7s);
}

TEST(PrefillBacklog, KeepsItsProgressWhenAnUnmodelledOneOvertakesTheOldest) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = unmodelled(80);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  backlog.remove(second, kStart + 6s);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 6s), 40);
  backlog.remove(first, kStart + 6s);
}

TEST(PrefillBacklog, TakesAPromptThatTakesNoTimeAsDone) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 0s);
  Prompt second = modelled(60, 6s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart), 60);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 3s), 60);
  EXPECT_DOUBLE_EQ(backlog.seconds(kStart + 3s), 3);
  backlog.remove(first, kStart + 3s);
  backlog.remove(second, kStart + 3s);
}

TEST(PrefillBacklog, DoesNotLetTimeRunBackwards) {
  PrefillBacklog backlog;
  Prompt first = modelled(100, 10s);
  Prompt second = modelled(50, 5s);
  Prompt third = modelled(50, 5s);
  backlog.add(first, kStart);
  backlog.add(second, kStart);
  backlog.add(third, kStart + 4s);
  // The thread that ended it last looked at the clock long ago.
  backlog.remove(first, kStart);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 4s), 100);
  EXPECT_DOUBLE_EQ(backlog.tokens(kStart + 5s), 90);
  backlog.remove(second, kStart);
  backlog.remove(third, kStart);
}

// The same rules, recounted from a list each time.
class Recount {
 public:
  void add(const Prompt& prompt, Time now) {
    if (prompts_.empty()) since_ = now;
    std::chrono::nanoseconds before{0};
    for (const Prompt& each : prompts_) before += each.duration.value_or(0ns);
    since_ = std::max(since_, now - before);
    prompts_.push_back(prompt);
  }
  void remove(std::size_t i, Time now) {
    const Prompt prompt = prompts_[i];
    prompts_.erase(prompts_.begin() + static_cast<std::ptrdiff_t>(i));
    if (i == 0) {
      since_ = now;
    } else if (prompt.duration) {
      since_ = std::min(now, since_ + *prompt.duration);
    }
  }
  double tokens(Time now) const {
    double all = 0;
    for (const Prompt& prompt : prompts_) all += static_cast<double>(prompt.tokens);
    if (prompts_.empty() || !prompts_[0].duration) return all;
    const double share = std::chrono::duration<double>(now - since_) / *prompts_[0].duration;
    const auto oldest = static_cast<double>(prompts_[0].tokens);
    return all_modelled() ? std::max(0.0, all - share * oldest)
                          : all - std::min(share, 1.0) * oldest;
  }
  double seconds(Time now) const {
    std::chrono::nanoseconds all{0};
    for (const Prompt& prompt : prompts_) all += prompt.duration.value_or(0ns);
    std::chrono::nanoseconds done{0};
    if (!prompts_.empty() && prompts_[0].duration) {
      const std::chrono::nanoseconds most = all_modelled() ? all : *prompts_[0].duration;
      done = now - since_ <= most ? now - since_ : 2 * most - (now - since_);
    }
    return std::chrono::duration<double>(all - done).count();
  }
  std::size_t size() const { return prompts_.size(); }

 private:
  bool all_modelled() const {
    return std::ranges::all_of(prompts_,
                               [](const Prompt& one) { return one.duration.has_value(); });
  }

  std::vector<Prompt> prompts_;
  Time since_;
};

TEST(PrefillBacklog, EqualsARecountAfterAnyHistory) {
  std::mt19937_64 random{11};
  for (int history = 0; history < 50; ++history) {
    const bool often_unmodelled = history % 2 == 0;
    PrefillBacklog backlog;
    Recount recount;
    std::list<Prompt> prompts;
    Time now = kStart;
    for (int step = 0; step < 400; ++step) {
      now += std::chrono::milliseconds(random() % 500);
      if (prompts.empty() || (prompts.size() < 20 && random() % 2 == 0)) {
        const auto tokens = static_cast<std::int64_t>(1 + random() % 5000);
        const bool model = !often_unmodelled || random() % 8 != 0;
        prompts.push_back(model ? modelled(tokens, std::chrono::milliseconds(1 + random() % 3000))
                                : unmodelled(tokens));
        recount.add(prompts.back(), now);
        backlog.add(prompts.back(), now);
      } else {
        const std::size_t i = random() % prompts.size();
        const auto leaving = std::next(prompts.begin(), static_cast<std::ptrdiff_t>(i));
        backlog.remove(*leaving, now);
        prompts.erase(leaving);
        recount.remove(i, now);
      }
      const Time later = now + std::chrono::milliseconds(random() % 4000);
      ASSERT_NEAR(backlog.tokens(later), recount.tokens(later), 1e-6) << history << ", " << step;
      ASSERT_NEAR(backlog.seconds(later), recount.seconds(later), 1e-9) << history << ", " << step;
    }
    for (Prompt& prompt : prompts) backlog.remove(prompt, now);
    EXPECT_EQ(backlog.tokens(), 0);
  }
}

TEST(PrefillBacklog, IsReadAsOfOneMoment) {
  constexpr int kRounds = 300'000;
  PrefillBacklog backlog;
  // In 5 ms the one loses 5 tokens, the other would lose 50.
  Prompt slow = modelled(1000, 1000ms);
  Prompt fast = modelled(10, 1ms);
  backlog.add(slow, kStart);
  backlog.add(fast, kStart);
  std::atomic<int> rounds{0};
  std::thread writer([&] {
    for (; rounds.load() < kRounds; rounds.fetch_add(1)) {
      backlog.remove(slow, kStart);  // fast alone: nothing is left of it
      backlog.add(slow, kStart);     // 960
      backlog.remove(fast, kStart);  // slow alone: 995
      backlog.add(fast, kStart);     // 1005
    }
  });
  int wrong = 0;
  while (rounds.load() < kRounds) {
    const double tokens = backlog.tokens(kStart + 5ms);
    if (tokens != 0 && tokens != 960 && tokens != 995 && tokens != 1005) ++wrong;
  }
  writer.join();
  EXPECT_EQ(wrong, 0);
  backlog.remove(slow, kStart);
  backlog.remove(fast, kStart);
}

}  // namespace
}  // namespace baton::scheduling
