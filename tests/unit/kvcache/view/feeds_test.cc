// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feeds.h"

#include "support/fake_engine.h"
#include "unit/kvcache/view/feeds_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <zmq.hpp>

namespace baton::kvcache {
namespace {

using config::IndexSource;
using test::FakePublisher;
using std::chrono_literals::operator""ms;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FeedsTest : public FeedsFixture {};

// How often the log says so.
std::size_t count(const std::string& lines, std::string_view event) {
  std::size_t found = 0;
  for (auto at = lines.find(event); at != lines.npos; at = lines.find(event, at + 1)) ++found;
  return found;
}

TEST_F(FeedsTest, ListensToAWorkerThatPublishes) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
  publisher.publish({.stored = {1, 2}});
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2));
  EXPECT_THAT(world->caches.plan("m").shapes, ElementsAre(BlockShape{.size = 1}));
  EXPECT_EQ(world->overlap({2, 9}), 1U);
  EXPECT_EQ(world->overlap({9}), 0U);
  const auto reports = world->feeds.reports();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].plan.events, publisher.events());
  EXPECT_EQ(reports[0].status->state, FeedState::Live);
  EXPECT_EQ(reports[0].cache->identity().authority, "10.0.0.1:8000");
  const std::string lines = end();
  EXPECT_EQ(count(lines, "kv_feed_up"), 1U);
  EXPECT_EQ(count(lines, "kv_feed_down"), 0U);
}

TEST_F(FeedsTest, WhoIsThereBeforeTheStartIsListenedToAsWell) {
  FakePublisher publisher;
  publisher.lose({.stored = {7}});
  world = std::make_unique<World>(io, deadlines, settings);
  world->announce(spec_of(publisher));
  world->feeds.start();
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(7));
}

TEST_F(FeedsTest, WhoLeavesIsForgotten) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1, 2}});
  wait_for(FeedHealth::Live);
  const auto id = world->fleet.members().front().worker->id();
  world->fleet.withdraw(fleet::Origin::Admin, "key");
  world->fleet.sweep();
  run_until([&] { return world->caches.find({id, 0}) == nullptr; });
  EXPECT_EQ(world->caches.index().size().blocks, 0U);
  EXPECT_THAT(world->feeds.reports(), IsEmpty());
  EXPECT_THAT(world->caches.plan("m").shapes, IsEmpty());
}

TEST_F(FeedsTest, AnotherFeedOfTheSameWorkerStartsAnew) {
  begin();
  FakePublisher first;
  FakePublisher second;
  listen(first);
  first.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  world->announce(spec_of(second));
  run_until([&] { return world->feeds.reports()[0].plan.events == second.events(); });
  EXPECT_THAT(world->blocks(), IsEmpty());
  ASSERT_TRUE(second.await_subscriber());
  second.publish({.stored = {2}});
  run_until([&] { return !world->blocks().empty(); });
  EXPECT_THAT(world->blocks(), ElementsAre(2));
  wait_for(FeedHealth::Live);
}

TEST_F(FeedsTest, AFeedThatIsSwitchedOffCountsNoMore) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  model::WorkerSpec spec = spec_of(publisher);
  spec.kv_feed = model::KvFeed{};
  spec.block_size = 64;
  world->announce(spec);
  wait_for(FeedHealth::None);
  EXPECT_THAT(world->blocks(), IsEmpty());
  EXPECT_FALSE(world->feeds.reports()[0].status);
  EXPECT_THAT(world->caches.plan("m").shapes, ElementsAre(BlockShape{.size = 64}));
}

TEST_F(FeedsTest, BlocksOfAnotherSizeThanIsSaidNowAreForgotten) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  model::WorkerSpec spec = spec_of(publisher);
  spec.block_size = 64;
  world->announce(spec);
  run_until([&] { return world->blocks().empty(); });
  const auto skipped = static_cast<std::size_t>(Skipped::BlockSize);
  run_until([&] { return world->status().tally.skipped[skipped] == 1; });
  EXPECT_THAT(end(), AllOf(HasSubstr("feed_block_size"), HasSubstr("\"configured\":64"),
                           HasSubstr("\"told\":1")));
}

// What it says of itself is a guess that the first event ends, and binds nobody.
TEST_F(FeedsTest, BlocksAreAsTheEventsSayWhateverTheEngineSaysOfItself) {
  begin();
  FakePublisher publisher;
  // The facts are there when the feed is opened.
  const auto id = world->announce(spec_of(publisher));
  engine::Facts facts;
  facts.block_size = 64;
  world->facts[id] = facts;
  wait_for(FeedHealth::Waiting);
  EXPECT_EQ(world->cache()->shape().size, 64U);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1));
  EXPECT_EQ(world->cache()->shape().size, 1U);
}

TEST_F(FeedsTest, AsksTheEngineWhereItPublishes) {
  begin();
  FakePublisher publisher;
  model::WorkerSpec spec;
  spec.endpoint = {"127.0.0.1", 8000};
  spec.engine = model::Engine::Sglang;
  const auto id = world->announce(spec);
  run_until([&] { return world->feeds.reports().size() == 1; });
  EXPECT_FALSE(world->feeds.reports()[0].status);
  engine::Facts facts;
  const std::string port = publisher.events().substr(publisher.events().rfind(':') + 1);
  facts.kv_events = {.publisher = "zmq",
                     .endpoint = {"", static_cast<std::uint16_t>(std::stoul(port))},
                     .topic = {}};
  world->facts[id] = facts;
  wait_for(FeedHealth::Waiting);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {3}});
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->overlap({3}), 1U);
  // While it is asked anew, what it said holds.
  world->facts.erase(id);
  spec.endpoint.port = 8001;
  world->announce(spec);
  run_until([&] { return world->feeds.reports().size() == 2; });
  EXPECT_EQ(world->overlap({3}), 1U);
}

TEST_F(FeedsTest, AModelThatIsAnAdapterIsHashedAsSuch) {
  begin();
  model::WorkerSpec spec;
  spec.endpoint = {"127.0.0.1", 8000};
  const auto id = world->announce(spec, "adapter");
  engine::Facts facts;
  facts.models = {{.id = "base", .parent = {}, .max_model_len = {}},
                  {.id = "adapter", .parent = "base", .max_model_len = {}}};
  world->facts[id] = facts;
  run_until([&] { return !world->caches.plan("adapter").lora.empty(); });
  EXPECT_EQ(world->caches.plan("adapter").lora, "adapter");
}

// Its events do not say which of them a block is of.
TEST_F(FeedsTest, AnSglangServerWithAdaptersGoesByDecisions) {
  for (const model::Engine engine : {model::Engine::Vllm, model::Engine::Sglang}) {
    begin();
    FakePublisher publisher;
    model::WorkerSpec spec = spec_of(publisher);
    spec.engine = engine;
    const auto id = world->announce(spec);
    wait_for(FeedHealth::Waiting);
    ASSERT_TRUE(publisher.await_subscriber());
    publisher.publish({.stored = {1}});
    wait_for(FeedHealth::Live);
    engine::Facts facts;
    facts.engine = engine;
    facts.block_size = 1;
    facts.models = {{.id = "m", .parent = {}, .max_model_len = {}},
                    {.id = "sql", .parent = "m", .max_model_len = {}}};
    // SGLang's events tell of adapters from the next release on.
    if (engine == model::Engine::Sglang)
      world->fleet.members().front().worker->runs(model::Version{0, 5, 22});
    world->facts[id] = facts;
    if (engine == model::Engine::Vllm) {
      publisher.publish({.stored = {2}});
      run_until([&] { return world->overlap({2}) == 1; });
      EXPECT_EQ(world->health(), FeedHealth::Live);
      end();
      continue;
    }
    wait_for(FeedHealth::Mixed);
    EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
    EXPECT_EQ(world->overlap({1}), 0U);
    facts.models.pop_back();
    world->facts[id] = facts;
    publisher.publish({.stored = {2}});
    run_until([&] { return world->blocks().contains(2); });
    EXPECT_EQ(world->health(), FeedHealth::Mixed) << "its blocks may be there still";
    const std::string lines = end();
    EXPECT_EQ(count(lines, "kv_feed_down"), 1U);
    EXPECT_THAT(lines, HasSubstr(R"("feed":"mixed")"));
  }
}

TEST_F(FeedsTest, SaltsThatWereSentBeforeTheReleaseWasKnownCountOnceItIs) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  const auto worker = world->fleet.members().front().worker;
  const std::vector<TokenId> tokens{7, 8};
  world->caches.sent({worker->id(), 0}, hash_prompt(world->caches.plan("m"), tokens, "salt"));
  EXPECT_EQ(world->health(), FeedHealth::Live);
  worker->runs(model::Version{0, 16, 0});  // whose events do not have them
  wait_for(FeedHealth::Mixed);
  EXPECT_THAT(end(), HasSubstr(R"("feed":"mixed")"));
}

// Two ranks, each publishing at a port of its own, the second's being the next.
class Ranks {
 public:
  Ranks() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      sockets_[0].emplace(context_, zmq::socket_type::xpub);
      sockets_[1].emplace(context_, zmq::socket_type::xpub);
      for (auto& socket : sockets_) socket->set(zmq::sockopt::rcvtimeo, 10'000);
      sockets_[0]->bind("tcp://127.0.0.1:*");
      endpoint_ = sockets_[0]->get(zmq::sockopt::last_endpoint);
      if (zmq_bind(sockets_[1]->handle(), endpoint_of_rank(endpoint_, 1).c_str()) == 0) return;
    }
    ADD_FAILURE() << "no two neighbouring ports are free";
  }
  const std::string& endpoint() const { return endpoint_; }
  bool await_subscriber(std::size_t rank) {
    zmq::message_t message;
    return sockets_[rank]->recv(message).has_value();
  }
  void publish(std::size_t rank, std::uint64_t number, const test::Batch& batch) {
    for (const std::string& frame : {std::string(), test::number_frame(number)})
      sockets_[rank]->send(zmq::buffer(frame), zmq::send_flags::sndmore);
    sockets_[rank]->send(zmq::buffer(test::encode(batch, 1.0)), zmq::send_flags::none);
  }

 private:
  zmq::context_t context_;
  std::array<std::optional<zmq::socket_t>, 2> sockets_;
  std::string endpoint_;
};

TEST_F(FeedsTest, EachRankHasAFeedOfItsOwn) {
  begin();
  Ranks ranks;
  model::WorkerSpec spec;
  spec.endpoint = {"10.0.0.1", 8000};
  spec.data_parallel_size = 2;
  spec.kv_feed = {.events = ranks.endpoint(), .replay = {}, .topic = {}};
  world->announce(spec);
  wait_for(FeedHealth::Waiting, 1);
  for (const std::size_t rank : {0UZ, 1UZ}) ASSERT_TRUE(ranks.await_subscriber(rank));
  ranks.publish(1, 0, {.stored = {5}, .rank = 1});
  wait_for(FeedHealth::Live, 1);
  EXPECT_EQ(world->health(0), FeedHealth::Waiting);
  ranks.publish(0, 0, {.stored = {4}});
  wait_for(FeedHealth::Live, 0);
  EXPECT_THAT(world->blocks(0), ElementsAre(4));
  EXPECT_THAT(world->blocks(1), ElementsAre(5));
}

TEST_F(FeedsTest, AFeedThatStopsWhilePromptsAreComputedIsSilent) {
  settings.silence = 50ms;
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  const auto holder = world->cache()->identity().holder;
  world->caches.computed(holder, {.fills_blocks = true, .sent = Clock::now()});
  wait_for(FeedHealth::Silent);
  EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
  EXPECT_EQ(world->overlap({1}), 0U);
  publisher.publish({.stored = {2}});
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->overlap({1}), 1U);
  const std::string lines = end();
  EXPECT_EQ(count(lines, "kv_feed_up"), 2U);
  EXPECT_EQ(count(lines, "kv_feed_down"), 1U);
  EXPECT_THAT(lines, AllOf(HasSubstr(R"("feed":"silent")"), HasSubstr(R"("goes_by":"decisions")")));
}

// Nothing listens at its endpoint until it comes.
class AbsentPublisher {
 public:
  AbsentPublisher() {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, 10'000);
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
    socket_.unbind(endpoint_);
  }
  const std::string& endpoint() const { return endpoint_; }
  model::WorkerSpec spec() const {
    model::WorkerSpec spec;
    spec.endpoint = {"10.0.0.1", 8000};
    spec.kv_feed = {.events = endpoint_, .replay = {}, .topic = {}};
    return spec;
  }
  void come() { socket_.bind(endpoint_); }
  void go() { socket_.close(); }
  bool await_subscriber() {
    zmq::message_t message;
    return socket_.recv(message).has_value();
  }
  void publish(const test::Batch& batch) {
    for (const std::string& frame : {std::string(), test::number_frame(0)})
      socket_.send(zmq::buffer(frame), zmq::send_flags::sndmore);
    socket_.send(zmq::buffer(test::encode(batch, 1.0)), zmq::send_flags::none);
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_{context_, zmq::socket_type::xpub};
  std::string endpoint_;
};

// vLLM connects to an endpoint with a host, as Baton does: then neither hears the other.
TEST_F(FeedsTest, AFeedWhoseEngineDoesNotListenIsUnreachableAndSaysWhy) {
  begin();
  AbsentPublisher publisher;
  const auto id = world->announce(publisher.spec());
  run_until([&] { return world->status().refusals > 3; });
  EXPECT_EQ(world->health(), FeedHealth::Waiting) << "the engine may not be up";
  EXPECT_EQ(world->cache()->reason(), "");
  world->facts[id] = {};
  wait_for(FeedHealth::Unreachable);
  EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
  EXPECT_THAT(world->cache()->reason(),
              AllOf(HasSubstr("cannot connect to " + publisher.endpoint()), HasSubstr("vllm"),
                    HasSubstr("tcp://*:5557")));
  publisher.come();
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->cache()->reason(), "");
  publisher.go();
  wait_for(FeedHealth::Waiting);
  const std::string lines = end();
  EXPECT_EQ(count(lines, R"("feed":"unreachable")"), 1U) << "one that was there once is restarted";
  EXPECT_THAT(lines, HasSubstr(R"("reason":"cannot connect to )"));
}

TEST_F(FeedsTest, AnEngineThatServesIsKnownToBeUpWithoutBeingAsked) {
  settings.silence = 50ms;
  begin();
  const AbsentPublisher publisher;
  world->announce(publisher.spec());
  run_until([&] { return world->status().refusals > 0; });
  EXPECT_EQ(world->health(), FeedHealth::Waiting);
  const auto holder = world->cache()->identity().holder;
  world->caches.computed(holder, {.fills_blocks = true, .sent = Clock::now()});
  wait_for(FeedHealth::Unreachable);
}

// SGLang's feeds have no replay socket: whether it is another engine is known with its next batch.
TEST_F(FeedsTest, AFeedWhoseWorkerIsAwayIsSilentUntilItIsBack) {
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1, 2}});
  wait_for(FeedHealth::Live);
  const auto worker = world->fleet.members().front().worker;
  worker->unreachable(fleet::Failure::Unreachable, "no route");
  wait_for(FeedHealth::Silent);
  EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
  worker->answered();
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2));
}

TEST_F(FeedsTest, WithoutReplayNothingIsBelievedAfterABrokenConnectionUntilABatchComes) {
  begin();
  FakePublisher publisher;
  listen(publisher, false);
  const auto prompt = [&](TokenId token) {
    return hash_prompt(world->caches.plan("m"), std::vector{token}, "");
  };
  const auto holder = world->cache()->identity().holder;
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->overlap({1}), 1U);
  publisher.restart();
  wait_for(FeedHealth::Waiting);
  EXPECT_EQ(world->status().state, FeedState::Unconfirmed);
  EXPECT_EQ(world->overlap({1}), 0U);
  world->caches.sent(holder, prompt(7));
  EXPECT_EQ(world->overlap({7}), 1U) << "it goes by decisions";

  ASSERT_TRUE(publisher.await_subscriber());
  publisher.set_next(1);  // the same engine, as it turns out
  publisher.publish({.stored = {2}});
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2));
  EXPECT_EQ(world->overlap({1}), 1U);

  publisher.restart();
  wait_for(FeedHealth::Waiting);
  EXPECT_EQ(world->overlap({7}), 0U) << "what was sent to an engine that may be gone is forgotten";
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {3}});
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(3));
  const std::string lines = end();
  EXPECT_EQ(count(lines, "kv_feed_up"), 3U);
  EXPECT_EQ(count(lines, "kv_feed_down"), 2U);
}

TEST_F(FeedsTest, UntilEventsComeBlocksAreAsTheEngineSays) {
  begin();
  FakePublisher publisher;
  model::WorkerSpec spec = spec_of(publisher);
  const auto id = world->announce(spec);
  wait_for(FeedHealth::Waiting);
  engine::Facts facts;
  facts.block_size = 64;
  world->facts[id] = facts;
  run_until([&] { return world->cache()->shape().size == 64; });
  EXPECT_THAT(world->caches.plan("m").shapes, ElementsAre(BlockShape{.size = 64}));
  // The events know it better.
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {1}});
  run_until([&] { return world->cache()->shape().size == 1; });
  run_for(600ms);
  EXPECT_EQ(world->cache()->shape().size, 1U);
}

TEST_F(FeedsTest, AFeedThatNeverSpeaksIsSilentToo) {
  settings.silence = 50ms;
  settings.source = IndexSource::Events;
  begin();
  FakePublisher publisher;
  listen(publisher);
  world->caches.computed(world->cache()->identity().holder,
                         {.fills_blocks = true, .sent = Clock::now()});
  wait_for(FeedHealth::Silent);
  EXPECT_THAT(end(), HasSubstr(R"("goes_by":"nothing")"));
}

TEST_F(FeedsTest, EventsThatCameWhileThePromptRanAreNotMissed) {
  settings.silence = 50ms;
  begin();
  FakePublisher publisher;
  listen(publisher);
  const auto sent = Clock::now();
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  world->caches.computed(world->cache()->identity().holder, {.fills_blocks = true, .sent = sent});
  run_for(600ms);
  EXPECT_EQ(world->health(), FeedHealth::Live);
}

TEST_F(FeedsTest, AFeedThatCannotBeReadIsBroken) {
  begin();
  FakePublisher publisher;
  listen(publisher, false);
  publisher.publish({.stored = {1}});
  wait_for(FeedHealth::Live);
  publisher.publish_frames({"", test::number_frame(1), "\x93 not msgpack"});
  wait_for(FeedHealth::Broken);
  EXPECT_EQ(world->overlap({1}), 0U);
  publisher.set_next(2);
  publisher.publish({.stored = {2}});
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->overlap({2}), 1U);
  EXPECT_THAT(end(), HasSubstr(R"("feed":"broken")"));
}

TEST_F(FeedsTest, ByDecisionsAloneNobodyIsListenedTo) {
  settings.source = IndexSource::Decisions;
  begin();
  FakePublisher publisher;
  world->announce(spec_of(publisher));
  run_until([&] { return world->feeds.reports().size() == 1; });
  EXPECT_FALSE(world->feeds.reports()[0].status);
  const auto prompt = hash_prompt(world->caches.plan("m"), std::vector<std::uint32_t>(32), "");
  world->caches.sent(world->cache()->identity().holder, prompt);
  EXPECT_EQ(world->caches.match(prompt).front().source, Trusted::Decisions);
}

TEST_F(FeedsTest, WhereTheIndexIsOffNothingIsKept) {
  settings.source = IndexSource::Off;
  begin();
  FakePublisher publisher;
  world->announce(spec_of(publisher));
  run_for(300ms);
  EXPECT_THAT(world->feeds.reports(), IsEmpty());
  EXPECT_THAT(world->caches.all(), IsEmpty());
}

TEST_F(FeedsTest, TensorRtLlmIsAskedForItsEvents) {
  const test::FakeEngine engine(
      test::by_path({{"/kv_cache_events",
                      test::response(200, R"([{"event_id":0,"data":{"type":"created"}}])")}}));
  begin();
  model::WorkerSpec spec;
  spec.endpoint = engine.endpoint();
  spec.engine = model::Engine::Trtllm;
  world->announce(spec);
  wait_for(FeedHealth::Live);
  EXPECT_EQ(world->feeds.reports()[0].plan.way, FeedPlan::Way::Poll);
  ASSERT_TRUE(world->feeds.reports()[0].status);
  EXPECT_EQ(world->feeds.reports()[0].status->position->sequence, 0U);
}

// Each of them would take the other's events away.
TEST_F(FeedsTest, AServerOfTwoModelsIsAskedOnceForBoth) {
  std::atomic<int> asked = 0;
  const test::FakeEngine engine([&](test::FakePeer& peer) {
    while (peer.read_request()) {
      const int id = asked++;
      peer.write(test::response(
          200, id > 0 ? "[]"
                      : R"([{"event_id":0,"data":{"type":"stored","parent_hash":null,"blocks":[)"
                        R"({"type":"stored_block","block_hash":7,"tokens":[{"token_id":1}]}]}}])"));
    }
  });
  begin();
  model::WorkerSpec spec;
  spec.endpoint = engine.endpoint();
  spec.engine = model::Engine::Trtllm;
  world->fleet.announce(fleet::Origin::Admin, "one", {.model = "m", .spec = spec});
  world->fleet.announce(fleet::Origin::Admin, "two", {.model = "n", .spec = spec});
  const auto held = [&] {
    std::vector<std::size_t> blocks;
    for (const auto& cache : world->caches.all())
      blocks.push_back(world->caches.index().holding(cache->slot()).blocks[0]);
    return blocks;
  };
  run_until([&] { return held() == std::vector<std::size_t>{1, 1}; });
  EXPECT_THAT(held(), ElementsAre(1, 1));
  for (const auto& report : world->feeds.reports()) EXPECT_TRUE(report.status->position);
  EXPECT_EQ(engine.connections(), 1U);
  // One that leaves does not end it for the other.
  world->fleet.withdraw(fleet::Origin::Admin, "one");
  world->fleet.sweep();
  run_until([&] { return held().size() == 1; });
  const int before = asked;
  run_until([&] { return asked > before + 1; });
  EXPECT_THAT(held(), ElementsAre(1));
}

TEST_F(FeedsTest, AnEngineWithoutEventsIsBrokenAndGoesByDecisions) {
  const test::FakeEngine engine(test::by_path({}));
  begin();
  model::WorkerSpec spec;
  spec.endpoint = engine.endpoint();
  spec.engine = model::Engine::Trtllm;
  world->announce(spec);
  wait_for(FeedHealth::Broken);
  EXPECT_EQ(world->cache()->trusted(IndexSource::Auto), Trusted::Decisions);
  EXPECT_THAT(end(), AllOf(HasSubstr("kv_poll_failed"), HasSubstr("kv_feed_down")));
}

TEST_F(FeedsTest, MetricsTellOfFeeds) {
  begin();
  FakePublisher publisher;
  listen(publisher, false);
  publisher.publish({.stored = {1}});
  publisher.lose({.removed = {1}});
  publisher.publish({.stored = {2}});
  publisher.publish_last_again();
  publisher.publish_frames({"", "short", "payload"});
  run_until([&] {
    return world->status().tally.malformed_batches == 1 && world->health() == FeedHealth::Live;
  });
  const std::string text = world->metrics.render();
  const std::string of = R"({model="m",worker="10.0.0.1:8000"})";
  EXPECT_THAT(text,
              HasSubstr(R"(baton_kv_feeds{model="m",worker="10.0.0.1:8000",state="live"} 1)"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_batches" + of + " 2\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_gaps" + of + " 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_lost" + of + " 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_replayed" + of + " 0\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_restarts" + of + " 0\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_duplicates" + of + " 1\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_malformed_batches" + of + " 1\n"));
  EXPECT_THAT(text,
              HasSubstr(R"(baton_kv_feed_sequence{model="m",worker="10.0.0.1:8000",rank="0"} 2)"
                        "\n"));
  EXPECT_THAT(text, HasSubstr("baton_kv_feed_lag_milliseconds" + of));
  EXPECT_THAT(text, Not(HasSubstr("baton_kv_feed_skipped{")));
}

}  // namespace
}  // namespace baton::kvcache
