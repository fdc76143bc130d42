// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/feed_thread.h"

#include "kvcache/index/index.h"
#include "telemetry/log.h"
#include "unit/kvcache/events/fake_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace baton::kvcache {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using test::FakePublisher;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Blocks = std::set<std::uint64_t>;

class FeedThreadTest : public testing::Test {
 protected:
  FeedThreadTest() { start({}); }

  void start(FeedThread::Options options) {
    options.replay_pause = 5ms;
    feeds.reset();
    feeds.emplace(index, log, options);
  }

  Slot join(const FeedSpec& spec) {
    const Slot slot = index.join(spec.holder);
    slots[spec.holder] = slot;
    return slot;
  }
  FeedSpec spec_of(const FakePublisher& publisher, bool with_replay, std::uint32_t worker = 1) {
    FeedSpec spec;
    spec.holder = {.worker = static_cast<model::WorkerId>(worker), .rank = 0};
    spec.name = "worker-" + std::to_string(worker);
    spec.events = publisher.events();
    if (with_replay) spec.replay = publisher.replay();
    return spec;
  }
  FeedSpec open(const FakePublisher& publisher, bool with_replay) {
    FeedSpec spec = spec_of(publisher, with_replay);
    feeds->open(spec, join(spec));
    return spec;
  }

  FeedStatus status(std::size_t which = 0) const { return feeds->statuses().at(which); }
  Blocks blocks(Holder holder) {
    Blocks blocks;
    feeds->while_quiet({}, [&](const auto*) {
      index.visit(slots.at(holder), [&](const Index::Held& held) { blocks.insert(held.engine); });
    });
    return blocks;
  }
  Blocks blocks() { return blocks(slots.begin()->first); }
  // The log, read where nobody writes it.
  std::string logged() {
    std::string copy;
    feeds->while_quiet({}, [&](const auto*) { copy = out; });
    return copy;
  }

  // Looks again and again, for there is nothing that could be waited on.
  static testing::AssertionResult eventually(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until)
        return testing::AssertionFailure() << "not in time";
      std::this_thread::yield();
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult reaches(std::uint64_t sequence) {
    return eventually([&] {
      const auto now = status();
      return now.position && now.position->sequence == sequence &&
             now.state != FeedState::Replaying;
    });
  }

  std::string out;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, out};
  Index index{{}};
  std::map<Holder, Slot> slots;
  std::optional<FeedThread> feeds;
};

TEST_F(FeedThreadTest, AppliesWhatIsPublished) {
  FakePublisher publisher;
  open(publisher, false);
  EXPECT_EQ(status().state, FeedState::Waiting);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1, 2}});
  publisher.publish({.stored = {3}, .removed = {1}});
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(2, 3));
  const FeedStatus now = status();
  EXPECT_EQ(now.state, FeedState::Live);
  EXPECT_EQ(now.tally.batches, 2U);
  EXPECT_EQ(now.shape, (BlockShape{.size = 1}));
  EXPECT_TRUE(now.last_batch);
  ASSERT_TRUE(now.lag);
  EXPECT_GT(*now.lag, 0s);
  EXPECT_THAT(logged(), testing::AllOf(HasSubstr("feed_opened"), HasSubstr("feed_live")));
}

TEST_F(FeedThreadTest, WhatWasPublishedBeforeIsReplayedAtTheStart) {
  FakePublisher publisher;
  publisher.lose({.stored = {1}});
  publisher.lose({.stored = {2}});
  open(publisher, true);
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(1, 2));
  EXPECT_EQ(status().replayed, 2U);
  EXPECT_EQ(status().lost, 0U);
}

class FramingTest : public FeedThreadTest,
                    public testing::WithParamInterface<FakePublisher::Framing> {};

TEST_P(FramingTest, AGapIsRepaired) {
  FakePublisher publisher(GetParam());
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1, 2}});
  ASSERT_TRUE(reaches(0));
  publisher.lose({.removed = {1}});
  publisher.publish({.stored = {3}});
  ASSERT_TRUE(reaches(2));
  EXPECT_THAT(blocks(), ElementsAre(2, 3));
  EXPECT_EQ(status().state, FeedState::Live);
  EXPECT_EQ(status().gaps, 1U);
  EXPECT_EQ(status().lost, 0U);
  EXPECT_THAT(logged(), testing::AllOf(HasSubstr("feed_gap"), HasSubstr("feed_repaired")));
}

INSTANTIATE_TEST_SUITE_P(Replies, FramingTest,
                         testing::Values(FakePublisher::Framing::Old, FakePublisher::Framing::New));

TEST_F(FeedThreadTest, AGapThatNobodyCanRepairForgetsWhatMayBeStale) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.lose({.removed = {1}});
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(2));
  EXPECT_THAT(blocks(), ElementsAre(2));
  EXPECT_EQ(status().state, FeedState::Gap);
  EXPECT_EQ(status().lost, 1U);
  EXPECT_THAT(logged(), HasSubstr("feed_lost"));
}

TEST_F(FeedThreadTest, HistoryThatIsTooShortForgets) {
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.keep(2);
  publisher.lose({.removed = {1}});
  publisher.lose({.stored = {2}});
  publisher.publish({.stored = {3}});
  ASSERT_TRUE(reaches(3));
  EXPECT_THAT(blocks(), ElementsAre(2, 3));
  EXPECT_EQ(status().lost, 1U);
}

TEST_F(FeedThreadTest, RepetitionsAreCountedAndDropped) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.publish_last_again();
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(1));
  EXPECT_EQ(status().duplicates, 1U);
  EXPECT_EQ(status().tally.batches, 2U);
}

TEST_F(FeedThreadTest, ARestartedEngineIsSeenByItsNumbers) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(1));
  publisher.restart();
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {3}});
  ASSERT_TRUE(reaches(0));
  EXPECT_THAT(blocks(), ElementsAre(3));
  EXPECT_EQ(status().restarts, 1U);
  EXPECT_THAT(logged(), HasSubstr("feed_restarted"));
}

TEST_F(FeedThreadTest, ARestartedEngineThatIsPastTheOldMarkIsSeenByReplay) {
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(1));
  publisher.restart();
  publisher.lose({.stored = {3}});
  publisher.lose({.stored = {4}});
  publisher.lose({.stored = {5}});
  ASSERT_TRUE(reaches(2));
  EXPECT_THAT(blocks(), ElementsAre(3, 4, 5));
  EXPECT_EQ(status().restarts, 1U);
}

TEST_F(FeedThreadTest, ASilentRestartedEngineIsSeenByReplay) {
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.restart();
  ASSERT_TRUE(eventually([&] { return status().restarts == 1; }));
  EXPECT_THAT(blocks(), IsEmpty());
}

TEST_F(FeedThreadTest, WithoutReplayWhatABrokenConnectionLeftIsUnconfirmed) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.restart();
  ASSERT_TRUE(eventually([&] { return status().state == FeedState::Unconfirmed; }));
  ASSERT_TRUE(publisher.await_subscriber());
  EXPECT_EQ(status().state, FeedState::Unconfirmed);
  publisher.set_next(1);  // as if only the connection had been another one
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(1, 2));
  EXPECT_EQ(status().restarts, 0U);
}

// More than is read at once: that the connection broke is known before the last of it is read.
TEST_F(FeedThreadTest, WithoutReplayWhatIsReadAfterTheConnectionBrokeConfirmsNothing) {
  constexpr std::uint64_t kBatches = 900;  // a publisher drops what is beyond a thousand
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  feeds->while_quiet({}, [&](const auto*) {
    for (std::uint64_t i = 0; i < kBatches; ++i) publisher.publish({.stored = {i}});
    publisher.end();
  });
  ASSERT_TRUE(reaches(kBatches - 1));
  EXPECT_TRUE(eventually([&] { return status().state == FeedState::Unconfirmed; }));
}

TEST_F(FeedThreadTest, WhatIsNoBatchIsCountedAndDoesNoHarm) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.publish_frames({""});
  publisher.publish_frames({"", "short", "payload"});
  publisher.publish_frames({"", test::number_frame(1)});
  publisher.publish_frames({"", "", test::number_frame(1), "payload"});
  publisher.publish_frames(std::vector<std::string>(500, "frame"));
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(1, 2));
  EXPECT_EQ(status().tally.malformed_batches, 5U);
  EXPECT_EQ(status().state, FeedState::Live);
  EXPECT_THAT(logged(), HasSubstr("feed_unreadable"));
}

TEST_F(FeedThreadTest, AFeedWhosePayloadsCannotBeReadIsBrokenAndBelievedInNothing) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  publisher.publish_frames({"", test::number_frame(1), "\x93 not msgpack"});
  ASSERT_TRUE(reaches(1));
  EXPECT_EQ(status().state, FeedState::Broken);
  EXPECT_THAT(blocks(), IsEmpty());
  publisher.set_next(2);
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(2));
  EXPECT_EQ(status().state, FeedState::Gap);
  EXPECT_THAT(blocks(), ElementsAre(2));
}

TEST_F(FeedThreadTest, AMessageBeyondAllMeasureCostsOnlyItsConnection) {
  FakePublisher publisher;
  open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.publish_frames({"", test::number_frame(1), std::string(std::size_t{65} << 20U, 'x')});
  ASSERT_TRUE(publisher.await_subscriber());  // again
  publisher.set_next(2);
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(2));
  EXPECT_THAT(blocks(), ElementsAre(2));
  EXPECT_THAT(logged(), HasSubstr("feed_failed"));
}

class BadReplayTest : public FeedThreadTest,
                      public testing::WithParamInterface<FakePublisher::Replay> {};

TEST_P(BadReplayTest, IsGivenUpAfterAFewAttempts) {
  start({.replay_timeout = 20ms, .replay_attempts = 3});
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.set_replay(GetParam());
  publisher.lose({.removed = {1}});
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(2));
  EXPECT_EQ(status().lost, 1U);
  EXPECT_THAT(blocks(), ElementsAre(2));
  EXPECT_THAT(logged(), HasSubstr("feed_replay_failed"));
  publisher.set_replay(FakePublisher::Replay::Normal);
}

INSTANTIATE_TEST_SUITE_P(Replies, BadReplayTest,
                         testing::Values(FakePublisher::Replay::Silent,
                                         FakePublisher::Replay::Rubbish));

TEST_F(FeedThreadTest, AnEndlessReplayEnds) {
  start({.replay_timeout = 20ms, .replay_attempts = 3});
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  publisher.set_replay(FakePublisher::Replay::Endless);
  publisher.lose({.removed = {1}});
  publisher.publish({.stored = {2}});
  ASSERT_TRUE(reaches(2));
  EXPECT_THAT(blocks(), ElementsAre(2));
}

TEST_F(FeedThreadTest, AResumedFeedKeepsWhatTheReplayConfirms) {
  FakePublisher publisher;
  FeedSpec spec = open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  spec.resume = status().position;
  feeds->close(spec.holder);
  EXPECT_THAT(feeds->statuses(), IsEmpty());
  publisher.lose({.stored = {2}});
  // Of the first batch only the memory is left that is resumed.
  feeds->open(spec, slots.at(spec.holder));
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(1, 2));
  EXPECT_EQ(status().replayed, 1U);
  EXPECT_EQ(status().restarts, 0U);
}

TEST_F(FeedThreadTest, AResumedFeedOfAnotherEngineIsForgotten) {
  FakePublisher publisher;
  FeedSpec spec = open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  spec.resume = status().position;
  feeds->close(spec.holder);
  publisher.restart();
  publisher.lose({.stored = {2}});
  publisher.lose({.stored = {3}});
  feeds->open(spec, slots.at(spec.holder));
  ASSERT_TRUE(reaches(1));
  EXPECT_THAT(blocks(), ElementsAre(2, 3));
}

TEST_F(FeedThreadTest, WhatWasPublishedJustBeforeTheSubscriptionStoodIsFoundWithoutFurtherBatches) {
  FakePublisher publisher;
  open(publisher, true);
  ASSERT_TRUE(eventually([&] { return publisher.requests() >= 1; }));
  publisher.lose({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  EXPECT_THAT(blocks(), ElementsAre(1));
}

TEST_F(FeedThreadTest, ClosesWhileAReplayRuns) {
  FakePublisher publisher;
  publisher.set_replay(FakePublisher::Replay::Silent);
  const FeedSpec spec = open(publisher, true);
  ASSERT_TRUE(eventually([&] { return publisher.requests() >= 1; }));
  ASSERT_TRUE(eventually([&] { return status().state == FeedState::Replaying; }));
  feeds->close(spec.holder);
  EXPECT_THAT(feeds->statuses(), IsEmpty());
}

TEST_F(FeedThreadTest, EndsWhileAReplayRuns) {
  FakePublisher publisher;
  publisher.set_replay(FakePublisher::Replay::Silent);
  open(publisher, true);
  ASSERT_TRUE(eventually([&] { return publisher.requests() >= 1; }));
  feeds.reset();
}

TEST_F(FeedThreadTest, AClosedFeedIsNotAppliedAnyMore) {
  FakePublisher publisher;
  const FeedSpec spec = open(publisher, false);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(reaches(0));
  feeds->close(spec.holder);
  publisher.publish({.stored = {2}});
  EXPECT_THAT(blocks(), ElementsAre(1));
}

// As where a server has several models.
TEST_F(FeedThreadTest, WorkersOfOneEngineAllHearIt) {
  FakePublisher publisher;
  for (const std::uint32_t worker : {1U, 2U}) {
    const FeedSpec spec = spec_of(publisher, false, worker);
    feeds->open(spec, join(spec));
  }
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  ASSERT_TRUE(
      eventually([&] { return feeds->statuses()[0].position && feeds->statuses()[1].position; }));
  for (const auto& [holder, slot] : slots) EXPECT_THAT(blocks(holder), ElementsAre(1));
  EXPECT_FALSE(logged().contains("feed_unroutable"));
}

// Several publishers connect to one address of ours.
class BoundFeedTest : public FeedThreadTest {
 protected:
  // Its port is chosen by the system and told in the log.
  std::string bound_endpoint() {
    const std::string text = logged();
    const std::size_t begin = text.find("tcp://");
    std::string endpoint = text.substr(begin, text.find('"', begin) - begin);
    return "tcp://127.0.0.1" + endpoint.substr(endpoint.rfind(':'));
  }
  FeedSpec bound(std::uint32_t worker, std::uint32_t rank, std::string authority) {
    FeedSpec spec;
    spec.holder = {.worker = static_cast<model::WorkerId>(worker), .rank = rank};
    spec.name = authority;
    spec.authority = std::move(authority);
    spec.events = "tcp://*:*";
    return spec;
  }
  Blocks of(std::uint32_t worker, std::uint32_t rank) {
    return blocks({.worker = static_cast<model::WorkerId>(worker), .rank = rank});
  }
  void open_all(std::vector<FeedSpec> specs) {
    for (FeedSpec& spec : specs) {
      const Slot slot = join(spec);
      feeds->open(std::move(spec), slot);
    }
  }
};

TEST_F(BoundFeedTest, PublishersAreToldApartByTheirTopics) {
  open_all({bound(1, 0, "10.0.0.1:8000"), bound(2, 0, "10.0.0.2:8000")});
  const std::string endpoint = bound_endpoint();
  FakePublisher first(FakePublisher::Framing::New, endpoint);
  FakePublisher second(FakePublisher::Framing::New, endpoint);
  FakePublisher stranger(FakePublisher::Framing::New, endpoint);
  first.set_topic("kv@10.0.0.1:8000@llama");
  second.set_topic("kv@10.0.0.2:8000@llama");
  stranger.set_topic("kv@10.0.0.3:8000@llama");
  for (FakePublisher* publisher : {&first, &second, &stranger})
    ASSERT_TRUE(publisher->await_subscriber());
  stranger.publish({.stored = {9}});
  first.set_next(1);  // as llm-d's simulator counts
  first.publish({.stored = {1}});
  second.publish({.stored = {2}});
  ASSERT_TRUE(eventually([&] {
    return feeds->statuses()[0].position && feeds->statuses()[1].position &&
           logged().contains("feed_unroutable");
  }));
  EXPECT_THAT(of(1, 0), ElementsAre(1));
  EXPECT_THAT(of(2, 0), ElementsAre(2));
}

TEST_F(BoundFeedTest, AStrangersEndlessTopicIsNotTakenUp) {
  open_all({bound(1, 0, "10.0.0.1:8000"), bound(2, 0, "10.0.0.2:8000")});
  const std::string endpoint = bound_endpoint();
  FakePublisher stranger(FakePublisher::Framing::New, endpoint);
  stranger.set_topic("kv@10.0.0.1:8000@" + std::string(100'000, 'x'));
  ASSERT_TRUE(stranger.await_subscriber());
  stranger.publish({.stored = {9}});
  ASSERT_TRUE(eventually([&] { return logged().contains("feed_unroutable"); }));
  EXPECT_LT(logged().size(), 10'000U);
  EXPECT_THAT(of(1, 0), IsEmpty());
}

TEST_F(BoundFeedTest, RanksOfAWorkerAreToldApartByTheirBatches) {
  open_all({bound(1, 0, "10.0.0.1:8000"), bound(1, 1, "10.0.0.1:8000")});
  const std::string endpoint = bound_endpoint();
  FakePublisher zero(FakePublisher::Framing::New, endpoint);
  FakePublisher one(FakePublisher::Framing::New, endpoint);
  for (FakePublisher* publisher : {&zero, &one}) {
    publisher->set_topic("kv@10.0.0.1:8000@llama");
    ASSERT_TRUE(publisher->await_subscriber());
  }
  zero.publish({.stored = {1}, .rank = 0});
  one.publish({.stored = {2}, .rank = 1});
  ASSERT_TRUE(
      eventually([&] { return feeds->statuses()[0].position && feeds->statuses()[1].position; }));
  EXPECT_THAT(of(1, 0), ElementsAre(1));
  EXPECT_THAT(of(1, 1), ElementsAre(2));
}

TEST_F(FeedThreadTest, AnEndpointThatCannotBeUsedIsSaidOnce) {
  FeedSpec spec;
  spec.name = "worker-1";
  spec.events = "no://such/protocol";
  feeds->open(spec, join(spec));
  ASSERT_TRUE(eventually([&] { return logged().contains("feed_failed"); }));
  EXPECT_EQ(status().state, FeedState::Waiting);
  feeds->close(spec.holder);
}

TEST_F(FeedThreadTest, ABusyFeedDoesNotStarveAnother) {
  FakePublisher busy;
  FakePublisher calm;
  FeedSpec of_busy = spec_of(busy, false, 1);
  FeedSpec of_calm = spec_of(calm, false, 2);
  feeds->open(of_busy, join(of_busy));
  feeds->open(of_calm, join(of_calm));
  ASSERT_TRUE(busy.await_subscriber());
  ASSERT_TRUE(calm.await_subscriber());
  calm.publish({.stored = {1}});
  std::uint64_t published = 0;
  ASSERT_TRUE(eventually([&] {
    for (int i = 0; i < 100; ++i) busy.publish({.stored = {++published}});
    return feeds->statuses()[1].position.has_value();
  }));
  EXPECT_TRUE(eventually([&] {
    const auto position = feeds->statuses()[0].position;
    return position && position->sequence == published - 1;
  }));
}

// With everything that can happen to a feed, over real sockets: when nothing happens any more, the
// index has what the engine has; and whoever looks meanwhile sees nothing that never was.
class LossyFeedTest : public FeedThreadTest, public testing::WithParamInterface<unsigned> {
 protected:
  // Until `stop`: whether each prompt that was found can have been.
  bool look(const std::stop_token& stop) const {
    bool possible = true;
    std::vector<Match> matches;
    for (TokenId token = 0; !stop.stop_requested(); token = (token + 1) % 400) {
      const BlockHash block = hash_block(std::array{token}, seed_of({}));
      index.match(std::array{first_sequence(block)}, matches);
      if (matches.empty()) continue;
      possible = possible && token < kDifferent && matches.size() == 1 &&
                 matches.front().blocks.front() == 1;
      std::this_thread::yield();
    }
    return possible;
  }
  static constexpr std::uint32_t kDifferent = 200;  // blocks, one for each token from 0 on
};

TEST_P(LossyFeedTest, AtTheQuietPointTheIndexIsTheEnginesTable) {
  std::mt19937 random(GetParam());
  // An engine that ends before a gap was repaired takes the missing batches with it.
  const bool ends_repaired = GetParam() / 2 % 2 == 0;
  FakePublisher publisher(GetParam() % 2 == 0 ? FakePublisher::Framing::Old
                                              : FakePublisher::Framing::New);
  open(publisher, true);
  ASSERT_TRUE(publisher.await_subscriber());
  bool possible = false;
  std::jthread onlooker([&](const std::stop_token& stop) { possible = look(stop); });
  std::uint64_t published = 0;
  for (int step = 0; step < 400; ++step) {
    test::Batch batch;
    for (unsigned i = random() % 4; i > 0; --i) batch.stored.push_back(random() % kDifferent);
    for (const std::uint64_t hash : publisher.table())
      if (random() % 16 == 0 && std::ranges::find(batch.stored, hash) == batch.stored.end())
        batch.removed.push_back(hash);
    ++published;
    if (random() % 8 == 0) {
      publisher.lose(batch);
    } else {
      publisher.publish(batch);
      if (random() % 8 == 0) publisher.publish_last_again();
    }
    if (random() % 100 == 0) {
      if (ends_repaired) {
        publisher.publish({.stored = {0}});
        ASSERT_TRUE(reaches(published));
      }
      publisher.restart();
      published = 0;
    }
  }
  publisher.publish({.stored = {1'000}});
  ASSERT_TRUE(reaches(published));
  EXPECT_EQ(blocks(), publisher.table());
  if (ends_repaired) EXPECT_EQ(status().lost, 0U);
  onlooker.request_stop();
  onlooker.join();
  EXPECT_TRUE(possible);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LossyFeedTest, testing::Range(0U, 8U));

}  // namespace
}  // namespace baton::kvcache
