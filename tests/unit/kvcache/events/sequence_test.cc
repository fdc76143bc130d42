// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace baton::kvcache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Which batches count.
struct Table final : Sequence::Sink {
  void apply(std::span<const std::byte> payload, Sequence::Origin) override {
    batches.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  void forget() override { batches.clear(); }
  std::vector<std::string> batches;
};

class SequenceTest : public testing::Test {
 protected:
  Sequence& replayable() {
    return sequence_.emplace(Sequence::Options{.replayable = true, .held_batches = 4}, std::nullopt,
                             table);
  }
  Sequence& alone() { return sequence_.emplace(Sequence::Options{}, std::nullopt, table); }
  // Continues where one that applied these left off.
  Sequence& resumed(bool can_replay, std::uint64_t number, const std::string& payload) {
    Table other;
    Sequence before({}, std::nullopt, other);
    before.live(number, bytes(payload));
    table.batches = {"resumed"};
    return sequence_.emplace(Sequence::Options{.replayable = can_replay}, before.position(), table);
  }
  void live(std::uint64_t number, const std::string& payload) {
    sequence_->live(number, bytes(payload));
  }
  bool replayed(std::uint64_t number, const std::string& payload) {
    return sequence_->replayed(number, bytes(payload));
  }
  std::optional<std::uint64_t> wanted_from() const {
    const auto wanted = sequence_->wanted();
    return wanted ? std::optional(wanted->from) : std::nullopt;
  }

  Table table;
  std::optional<Sequence> sequence_;
};

TEST_F(SequenceTest, ContiguousBatchesAreApplied) {
  const Sequence& sequence = alone();
  EXPECT_EQ(sequence.state(), FeedState::Waiting);
  live(0, "a");
  live(1, "b");
  EXPECT_THAT(table.batches, ElementsAre("a", "b"));
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_EQ(sequence.position()->sequence, 1U);
}

TEST_F(SequenceTest, WhoJoinsLateWithoutReplayBeginsWithWhatComes) {
  const Sequence& sequence = alone();
  live(500, "a");
  EXPECT_THAT(table.batches, ElementsAre("a"));
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_EQ(sequence.counts(), Sequence::Counts{});
}

TEST_F(SequenceTest, RepetitionsAreDropped) {
  const Sequence& sequence = alone();
  live(0, "a");
  live(1, "b");
  live(1, "b");
  live(0, "a");
  live(2, "c");
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c"));
  EXPECT_EQ(sequence.counts().duplicates, 2U);
}

// Thousands of batches may be on their way to us when a replay overtakes them.
TEST_F(SequenceTest, WhatWasReplayedIsKnownAgainWhenItComesLate) {
  const Sequence& sequence = replayable();
  const auto payload = [](std::uint64_t number) { return "batch " + std::to_string(number); };
  live(0, payload(0));
  live(2, payload(2));
  for (std::uint64_t number = 0; number <= 20'000; ++number) replayed(number, payload(number));
  sequence_->replay_done();
  for (std::uint64_t number = 3; number <= 20'001; ++number) live(number, payload(number));
  EXPECT_EQ(sequence.counts().restarts, 0U);
  EXPECT_EQ(sequence.counts().duplicates, 19'998U);
  EXPECT_EQ(sequence.position()->sequence, 20'001U);
  EXPECT_EQ(table.batches.size(), 20'002U);
}

TEST_F(SequenceTest, ANewEngineAfterALongReplayIsNoticed) {
  const Sequence& sequence = replayable();
  live(500, "late");
  for (std::uint64_t number = 0; number <= 500; ++number)
    replayed(number, number == 500 ? "late" : "batch " + std::to_string(number));
  sequence_->replay_done();
  live(0, "of another engine");
  EXPECT_EQ(sequence.counts().restarts, 1U);
  EXPECT_THAT(table.batches, ElementsAre("of another engine"));
}

TEST_F(SequenceTest, TheSameNumberWithAnotherPayloadIsANewEngine) {
  const Sequence& sequence = alone();
  live(0, "a");
  live(1, "b");
  live(0, "x");
  live(1, "y");
  EXPECT_THAT(table.batches, ElementsAre("x", "y"));
  EXPECT_EQ(sequence.counts().restarts, 1U);
  EXPECT_EQ(sequence.counts().lost, 0U);
}

TEST_F(SequenceTest, AGapWithoutReplayForgets) {
  const Sequence& sequence = alone();
  live(0, "a");
  live(3, "d");
  EXPECT_THAT(table.batches, ElementsAre("d"));
  EXPECT_EQ(sequence.state(), FeedState::Gap);
  EXPECT_EQ(sequence.counts().gaps, 1U);
  EXPECT_EQ(sequence.counts().lost, 2U);
}

TEST_F(SequenceTest, AGapIsRepairedByAReplayThatRepeatsTheLastBatchFirst) {
  const Sequence& sequence = replayable();
  live(0, "a");
  live(3, "d");
  EXPECT_EQ(sequence.state(), FeedState::Replaying);
  EXPECT_EQ(wanted_from(), 0U);
  EXPECT_THAT(table.batches, ElementsAre("a"));
  EXPECT_TRUE(replayed(0, "a"));
  EXPECT_TRUE(replayed(1, "b"));
  live(4, "e");
  EXPECT_TRUE(replayed(2, "c"));
  EXPECT_TRUE(replayed(3, "d"));
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_EQ(wanted_from(), std::nullopt);
  EXPECT_EQ(sequence.counts().replayed, 3U);
  EXPECT_EQ(sequence.counts().lost, 0U);
}

TEST_F(SequenceTest, WhoJoinsLateHasTheBeginningRepeated) {
  replayable();
  live(2, "c");
  EXPECT_EQ(wanted_from(), 0U);
  replayed(0, "a");
  replayed(1, "b");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c"));
}

TEST_F(SequenceTest, AReplayWhoseHistoryBeginsLaterForgets) {
  const Sequence& sequence = replayable();
  live(0, "a");
  live(9, "j");
  replayed(7, "h");
  replayed(8, "i");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("h", "i", "j"));
  EXPECT_EQ(sequence.counts().lost, 6U);
  EXPECT_EQ(sequence.state(), FeedState::Gap);
}

TEST_F(SequenceTest, AnEngineThatDoesNotHaveTheLastBatchIsANewOne) {
  const Sequence& sequence = replayable();
  live(0, "a");
  live(3, "d");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(wanted_from(), 0U);
  while (sequence_->wanted()) sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("d"));
  EXPECT_EQ(sequence.counts().restarts, 1U);
}

TEST_F(SequenceTest, AReplayThatNobodyAnswersForgets) {
  const Sequence& sequence = replayable();
  live(0, "a");
  live(2, "c");
  live(3, "d");
  sequence_->replay_failed();
  EXPECT_THAT(table.batches, ElementsAre("c", "d"));
  EXPECT_EQ(sequence.counts().lost, 1U);
}

TEST_F(SequenceTest, WhatIsLostWhileAReplayIsAnsweredIsAskedForAgain) {
  replayable();
  live(0, "a");
  live(2, "c");
  replayed(0, "a");
  replayed(1, "b");
  live(5, "f");
  replayed(2, "c");
  sequence_->replay_done();
  EXPECT_EQ(wanted_from(), 2U);
  for (const auto& [number, payload] : {std::pair(2U, "c"), {3U, "d"}, {4U, "e"}, {5U, "f"}})
    replayed(number, payload);
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_EQ(sequence_->counts().lost, 0U);
}

TEST_F(SequenceTest, AReplayThatNeverHasWhatIsMissingIsNotAskedForEver) {
  replayable();
  live(0, "a");
  live(2, "c");
  int rounds = 0;
  for (; sequence_->wanted() && rounds < 10; ++rounds) {
    replayed(0, "a");
    sequence_->replay_done();
  }
  EXPECT_EQ(rounds, 2);
  EXPECT_THAT(table.batches, ElementsAre("c"));
}

TEST_F(SequenceTest, AnInterruptedReplayGoesOnFromWhereItGotTo) {
  replayable();
  live(0, "a");
  live(3, "d");
  replayed(0, "a");
  replayed(1, "b");
  const auto before = sequence_->wanted();
  sequence_->replay_interrupted();
  EXPECT_NE(sequence_->wanted(), before);
  EXPECT_EQ(wanted_from(), 1U);
  replayed(1, "b");
  replayed(2, "c");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c", "d"));
}

TEST_F(SequenceTest, RepliesThatDoNotRiseAreOfNoUse) {
  replayable();
  live(5, "f");
  live(6, "g");
  EXPECT_TRUE(replayed(3, "d"));
  EXPECT_FALSE(replayed(3, "other"));
  EXPECT_FALSE(replayed(1, "b"));
  EXPECT_TRUE(replayed(4, "e"));
  sequence_->replay_done();
  EXPECT_FALSE(replayed(7, "h"));
  EXPECT_THAT(table.batches, ElementsAre("d", "e", "f", "g"));
}

TEST_F(SequenceTest, ANewEngineWhoseCounterIsPastTheOldMarkIsNoticed) {
  replayable();
  live(0, "a");
  live(1, "b");
  sequence_->reconnected();
  EXPECT_EQ(wanted_from(), 1U);
  live(2, "z");
  EXPECT_THAT(table.batches, ElementsAre("a", "b"));
  replayed(1, "y");
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(wanted_from(), 0U);
  replayed(0, "x");
  replayed(1, "y");
  replayed(2, "z");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("x", "y", "z"));
  EXPECT_EQ(sequence_->counts().restarts, 1U);
}

TEST_F(SequenceTest, ANewEngineThatIsNotAsFarYetIsNoticed) {
  replayable();
  live(0, "a");
  live(1, "b");
  live(2, "c");
  sequence_->reconnected();
  sequence_->replay_done();
  EXPECT_EQ(wanted_from(), 0U);
  replayed(0, "x");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("x"));
  EXPECT_EQ(sequence_->state(), FeedState::Live);
}

TEST_F(SequenceTest, TheSameEngineAfterAReconnectLosesNothing) {
  replayable();
  live(0, "a");
  sequence_->reconnected();
  replayed(0, "a");
  replayed(1, "b");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("a", "b"));
  EXPECT_EQ(sequence_->counts().restarts, 0U);
}

TEST_F(SequenceTest, WhatNobodyConfirmsAfterAReconnectIsForgotten) {
  replayable();
  live(0, "a");
  sequence_->reconnected();
  sequence_->replay_failed();
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(sequence_->counts().lost, 0U);
}

// Another engine may be at the other end, and there is nobody to ask.
TEST_F(SequenceTest, WithoutReplayABrokenConnectionIsDoubtedUntilTheNextBatch) {
  const Sequence& sequence = alone();
  sequence_->reconnected();
  sequence_->disconnected();
  EXPECT_EQ(sequence.state(), FeedState::Waiting) << "there is nothing to doubt yet";
  live(0, "a");
  live(1, "b");
  for (const bool stands_again : {false, true}) {
    stands_again ? sequence_->reconnected() : sequence_->disconnected();
    EXPECT_EQ(sequence.state(), FeedState::Unconfirmed);
    EXPECT_EQ(sequence.position()->sequence, 1U);
    EXPECT_THAT(table.batches, ElementsAre("a", "b")) << "it is kept: it may be right";
  }
  live(2, "c");
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_THAT(table.batches, ElementsAre("a", "b", "c"));
  EXPECT_EQ(sequence.counts(), Sequence::Counts{});
}

// The news of a connection and what comes over it take different ways.
TEST_F(SequenceTest, WithoutReplayANewConnectionDoesNotDoubtWhatCameOverIt) {
  const Sequence& sequence = alone();
  live(0, "a");
  sequence_->disconnected();
  live(1, "b");
  ASSERT_EQ(sequence.state(), FeedState::Live);
  sequence_->reconnected();
  EXPECT_EQ(sequence.state(), FeedState::Live) << "it came over the new one";
  EXPECT_THAT(table.batches, ElementsAre("a", "b"));
  sequence_->reconnected();
  EXPECT_EQ(sequence.state(), FeedState::Unconfirmed) << "another one, whose loss nobody told";
}

TEST_F(SequenceTest, WithoutReplayANewConnectionDoesNotEndADoubt) {
  const Sequence& sequence = alone();
  live(0, "a");
  sequence_->disconnected();
  sequence_->reconnected();
  EXPECT_EQ(sequence.state(), FeedState::Unconfirmed) << "an engine that was started anew is quiet";
  sequence_->disconnected();
  live(0, "x");
  sequence_->reconnected();
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_THAT(table.batches, ElementsAre("x"));
}

TEST_F(SequenceTest, WhoRepeatsItsLastBatchAfterABrokenConnectionIsTheSameEngine) {
  const Sequence& sequence = alone();
  live(0, "a");
  sequence_->reconnected();
  live(0, "a");
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_EQ(sequence.counts().duplicates, 1U);
  EXPECT_THAT(table.batches, ElementsAre("a"));
}

TEST_F(SequenceTest, WithoutReplayWhatIsMissingAfterABrokenConnectionIsLost) {
  const Sequence& sequence = alone();
  live(0, "a");
  sequence_->reconnected();
  live(3, "d");
  EXPECT_EQ(sequence.state(), FeedState::Gap);
  EXPECT_EQ(sequence.counts().lost, 2U);
  EXPECT_THAT(table.batches, ElementsAre("d"));
}

TEST_F(SequenceTest, WithoutReplayAnotherEngineIsSeenByItsFirstBatch) {
  const Sequence& sequence = alone();
  live(0, "a");
  live(1, "b");
  sequence_->reconnected();
  live(0, "x");
  EXPECT_EQ(sequence.state(), FeedState::Live);
  EXPECT_EQ(sequence.counts().restarts, 1U);
  EXPECT_THAT(table.batches, ElementsAre("x"));
}

TEST_F(SequenceTest, WithReplayABrokenConnectionIsNoNewsBeforeItStandsAgain) {
  const Sequence& sequence = replayable();
  live(0, "a");
  sequence_->disconnected();
  EXPECT_EQ(sequence.state(), FeedState::Live);
}

TEST_F(SequenceTest, ARestartWhileAReplayRunsAsksFromTheBeginning) {
  replayable();
  live(0, "a");
  live(4, "e");
  replayed(0, "a");
  live(1, "y");
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(wanted_from(), 0U);
  replayed(0, "x");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("x", "y"));
}

TEST_F(SequenceTest, ALiveBatchThatTheReplayHasDifferentlyMeansANewEngine) {
  replayable();
  live(0, "a");
  live(2, "c");
  replayed(0, "a");
  replayed(1, "b");
  replayed(2, "z");
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(wanted_from(), 0U);
}

TEST_F(SequenceTest, MoreThanMayBeHeldIsAskedForAfterwards) {
  replayable();
  live(9, "9");
  replayed(8, "8");
  for (std::uint64_t number = 10; number < 20; ++number) live(number, std::to_string(number));
  sequence_->replay_done();
  EXPECT_EQ(wanted_from(), 12U);
  for (std::uint64_t number = 12; number < 20; ++number) replayed(number, std::to_string(number));
  sequence_->replay_done();
  EXPECT_EQ(table.batches.size(), 12U);
  EXPECT_EQ(sequence_->state(), FeedState::Live);
  EXPECT_EQ(sequence_->counts().lost, 0U);
}

TEST_F(SequenceTest, AFeedThatOutrunsASilentReplayGoesOnWithoutIt) {
  replayable();
  live(0, "a");
  for (std::uint64_t number = 2; number < 20; ++number) live(number, "b");
  EXPECT_EQ(sequence_->wanted(), std::nullopt);
  EXPECT_EQ(table.batches.size(), 18U);
  EXPECT_EQ(sequence_->counts().lost, 1U);
}

TEST_F(SequenceTest, ABatchLargerThanAllThatMayBeHeldIsHeldAlone) {
  sequence_.emplace(Sequence::Options{.replayable = true, .held_batches = 0, .held_bytes = 1},
                    std::nullopt, table);
  live(1, "large");
  EXPECT_EQ(wanted_from(), 0U);
  while (sequence_->wanted()) sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("large"));
}

TEST_F(SequenceTest, AResumedFeedGoesOnWithTheNextBatch) {
  resumed(false, 7, "h");
  live(8, "i");
  EXPECT_THAT(table.batches, ElementsAre("resumed", "i"));
}

TEST_F(SequenceTest, AResumedFeedForgetsWhereTheNextBatchIsAnotherOne) {
  resumed(false, 7, "h");
  live(9, "j");
  EXPECT_THAT(table.batches, ElementsAre("j"));
}

TEST_F(SequenceTest, AResumedFeedIsVerifiedByReplay) {
  resumed(true, 7, "h");
  sequence_->reconnected();
  EXPECT_EQ(wanted_from(), 7U);
  replayed(7, "h");
  replayed(8, "i");
  sequence_->replay_done();
  EXPECT_THAT(table.batches, ElementsAre("resumed", "i"));
}

TEST_F(SequenceTest, AResumedFeedOfAnotherEngineIsForgotten) {
  resumed(true, 7, "h");
  sequence_->reconnected();
  replayed(7, "other");
  EXPECT_THAT(table.batches, IsEmpty());
  EXPECT_EQ(wanted_from(), 0U);
}

// An engine, a subscription that loses and repeats, and a replay socket with a ring.
struct Engine {
  std::string payload(std::uint64_t number) const {
    return std::to_string(instance) + ":" + std::to_string(number);
  }
  void restart() {
    ++instance;
    next = 0;
  }
  int instance = 0;
  std::uint64_t next = 0;
  std::uint64_t ring = 0;  // how many batches it can repeat
};

// Under any interleaving of losses, repetitions, restarts and broken connections: what counts is one
// engine's and contiguous; and when all is quiet it is the last engine's, up to its last batch, and
// from its first one on where everything can be repeated and held.
TEST(SequenceModel, WhatCountsIsARunOfOneEnginesBatches) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    std::mt19937 random(seed);
    const auto one_in = [&random](unsigned n) { return random() % n == 0; };
    const bool roomy = one_in(2);
    Engine engine{.ring = roomy ? 1'000'000U : 1 + random() % 12};
    Table table;
    Sequence sequence({.replayable = true, .held_batches = roomy ? 1'000U : 1 + random() % 8},
                      std::nullopt, table);
    // The replay that is being answered: what was in the ring when it was asked.
    std::optional<Sequence::Wanted> asked;
    std::vector<std::pair<std::uint64_t, std::string>> answers;
    std::size_t answered = 0;

    const auto check = [&] {
      for (std::size_t i = 1; i < table.batches.size(); ++i) {
        const std::string& a = table.batches[i - 1];
        const std::string& b = table.batches[i];
        ASSERT_EQ(a.substr(0, a.find(':')), b.substr(0, b.find(':'))) << "seed " << seed;
        ASSERT_EQ(std::stoull(a.substr(a.find(':') + 1)) + 1,
                  std::stoull(b.substr(b.find(':') + 1)))
            << "seed " << seed;
      }
    };
    const auto serve = [&](bool fail) {
      if (!sequence.wanted()) return;
      if (asked != sequence.wanted()) {
        asked = sequence.wanted();
        answers.clear();
        answered = 0;
        const std::uint64_t oldest = engine.next > engine.ring ? engine.next - engine.ring : 0;
        for (std::uint64_t n = std::max(oldest, asked->from); n < engine.next; ++n)
          answers.emplace_back(n, engine.payload(n));
      } else if (fail) {
        sequence.replay_interrupted();
      } else if (answered < answers.size()) {
        sequence.replayed(answers[answered].first, bytes(answers[answered].second));
        ++answered;
      } else {
        sequence.replay_done();
      }
    };
    const auto publish = [&](bool arrives) {
      const std::uint64_t number = engine.next++;
      if (!arrives) return;
      sequence.live(number, bytes(engine.payload(number)));
      if (one_in(8)) sequence.live(number, bytes(engine.payload(number)));
    };

    sequence.reconnected();
    for (int step = 0; step < 150; ++step) {
      switch (random() % 8) {
        case 0:
          if (one_in(6)) {
            engine.restart();
            // Batches before the connection is made anew are nobody's.
            for (unsigned i = random() % 6; i > 0; --i) publish(false);
            sequence.reconnected();
          }
          break;
        case 1:
          if (one_in(4)) sequence.reconnected();
          break;
        case 2:
        case 3:
        case 4:
          publish(!one_in(5));
          break;
        default:
          serve(one_in(20));
      }
      ASSERT_NO_FATAL_FAILURE(check());
    }
    // Quiet: the connection is confirmed, and every question answered.
    sequence.reconnected();
    for (int step = 0; step < 2'000 && sequence.wanted(); ++step) serve(false);
    ASSERT_EQ(sequence.wanted(), std::nullopt) << "seed " << seed;
    ASSERT_NO_FATAL_FAILURE(check());
    if (engine.next == 0) {
      ASSERT_THAT(table.batches, IsEmpty()) << "seed " << seed;
      continue;
    }
    ASSERT_FALSE(table.batches.empty()) << "seed " << seed;
    ASSERT_EQ(table.batches.back(), engine.payload(engine.next - 1)) << "seed " << seed;
    if (!roomy) continue;
    ASSERT_EQ(table.batches.front(), engine.payload(0)) << "seed " << seed;
    ASSERT_EQ(sequence.counts().lost, 0U) << "seed " << seed;
  }
}

// Without replay the numbers alone have to tell.
TEST(SequenceModel, WithoutReplayWhatCountsIsContiguousToo) {
  for (unsigned seed = 0; seed < 1'000; ++seed) {
    std::mt19937 random(seed);
    Engine engine;
    Table table;
    Sequence sequence({}, std::nullopt, table);
    std::vector<std::string> expected;
    std::uint64_t next = 0;
    for (int step = 0; step < 200; ++step) {
      if (random() % 40 == 0) {
        engine.restart();
        expected.clear();
        next = 0;
      }
      const std::uint64_t number = engine.next++;
      const std::string payload = engine.payload(number);
      // The first batch of an engine is not lost here: then a restart could not be told.
      if (number != 0 && random() % 10 == 0) continue;
      if (number != next) expected.clear();
      expected.push_back(payload);
      next = number + 1;
      sequence.live(number, bytes(payload));
      if (random() % 10 == 0) sequence.live(number, bytes(payload));
      ASSERT_EQ(table.batches, expected) << "seed " << seed;
      ASSERT_EQ(sequence.wanted(), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace baton::kvcache
