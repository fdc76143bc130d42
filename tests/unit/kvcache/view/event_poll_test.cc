// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/event_poll.h"

#include "support/fake_engine.h"
#include "support/io_fixture.h"
#include "support/no_descriptors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace baton::kvcache {
namespace {

using std::chrono_literals::operator""ms;
using test::FakeEngine;
using test::response;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One block of four tokens, the first of a prompt.
std::string stored(int id, int block, int rank = 0) {
  std::string tokens;
  for (int i = 0; i < 4; ++i)
    tokens += fmt::format("{}{{\"token_id\":{},\"token_extra_id\":0}}", i == 0 ? "" : ",",
                          block * 10 + i);
  return fmt::format(
      R"({{"event_id":{},"attention_dp_rank":{},"data":{{"type":"stored","parent_hash":null,)"
      R"("blocks":[{{"type":"stored_block","block_hash":{},"tokens":[{}]}}]}}}})",
      id, rank, block, tokens);
}
std::string removed(int id, int block) {
  return fmt::format(R"({{"event_id":{},"data":{{"type":"removed","block_hashes":[{}]}}}})", id,
                     block);
}

class EventPollTest : public baton::test::IoFixture {
 protected:
  ~EventPollTest() override {
    if (poll) poll->close();
    pool.shut_down();
    run_until([this] { return ended; });
  }
  // One more worker that the server is.
  void join(std::uint64_t id, std::uint32_t ranks = 1, std::optional<std::uint32_t> size = {}) {
    model::WorkerSpec spec;
    spec.endpoint = endpoint.value_or(engine.endpoint());
    spec.engine = model::Engine::Trtllm;
    spec.data_parallel_size = ranks;
    spec.block_size = size;
    const auto worker =
        std::make_shared<fleet::Worker>(model::WorkerId{id}, spec, config::Health{});
    auto& own = slots[id];
    for (std::uint32_t rank = 0; rank < ranks; ++rank) own.push_back(index.join({{id}, rank}));
    poll->join(worker, own, size);
  }
  void begin(std::uint32_t ranks = 1) {
    poll = std::make_shared<EventPoll>(io, pool, log, index);
    join(1, ranks);
    ended = false;
    start([this]() -> test::awaitable<void> {
      co_await poll->run();
      ended = true;
    });
  }
  // The next answer, once; after the last one there are no events.
  void answer(std::string bytes) {
    const std::lock_guard lock(mutex);
    answers.push_back(std::move(bytes));
  }
  void answer_events(const std::string& events) { answer(response(200, "[" + events + "]")); }
  // Until that many more questions have been answered.
  void more_questions(std::size_t count) {
    const std::size_t before = engine.requests().size();
    run_until([&] { return engine.requests().size() >= before + count; });
  }
  std::size_t blocks(std::uint32_t rank = 0, std::uint64_t id = 1) const {
    return index.holding(slots.at(id)[rank]).blocks[0];
  }
  const FeedStatus& status(std::uint32_t rank = 0, std::uint64_t id = 1) const {
    return *poll->status({{id}, rank});
  }

  std::mutex mutex;
  std::deque<std::string> answers;  // under mutex
  FakeEngine engine{[this](test::FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      std::string bytes = response(200, "[]");
      {
        const std::lock_guard lock(mutex);
        if (!answers.empty()) {
          bytes = std::move(answers.front());
          answers.pop_front();
        }
      }
      if (bytes == "wait") {
        peer.wait_for_proceed();
        bytes = response(200, "[" + stored(0, 1) + "]");
      }
      if (bytes.empty()) return;  // hangs up
      peer.write(bytes);
    }
  }};
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  Index index{{}};
  std::map<std::uint64_t, std::vector<Slot>> slots;  // by worker, then rank
  std::optional<model::Endpoint> endpoint;           // instead of the engine's
  http_client::UpstreamPool pool{
      io, deadlines, {.connect_timeout = 2'000ms, .idle_per_worker = 1, .header_bytes = 65'536}};
  std::shared_ptr<EventPoll> poll;
  bool ended = true;
};

TEST_F(EventPollTest, AppliesWhatIsAnswered) {
  answer_events(stored(0, 1) + "," + stored(1, 2));
  answer_events(removed(2, 1));
  begin();
  run_until([&] { return blocks() == 2; });
  EXPECT_EQ(status(0).state, FeedState::Live);
  EXPECT_EQ(status(0).shape, (BlockShape{.size = 4}));
  run_until([&] { return blocks() == 1; });
  const FeedStatus& last = status(0);
  EXPECT_EQ(last.holder, (Holder{{1}, 0}));
  EXPECT_EQ(last.position->sequence, 2U);
  EXPECT_TRUE(last.last_batch);
  EXPECT_EQ(last.tally.events, 3U);
  EXPECT_THAT(engine.requests().front().head, HasSubstr("POST /kv_cache_events HTTP"));
}

TEST_F(EventPollTest, TellsRanksApart) {
  answer_events(stored(0, 1, 0) + "," + stored(0, 2, 1) + "," + stored(1, 3, 1));
  begin(2);
  run_until([&] { return blocks(1) == 2; });
  EXPECT_EQ(blocks(0), 1U);
  EXPECT_EQ(status(0).position->sequence, 0U);
  EXPECT_EQ(status(1).position->sequence, 1U);
  EXPECT_EQ(status(1).holder.rank, 1U);
}

TEST_F(EventPollTest, WaitsWhereNothingHasHappenedYet) {
  begin();
  more_questions(3);
  EXPECT_EQ(status(0).state, FeedState::Waiting);
  EXPECT_FALSE(status(0).last_batch);
  EXPECT_EQ(lines, "");
}

TEST_F(EventPollTest, WhoHasNoEventsIsBrokenAndToldOfOnce) {
  answer(response(404, "{}"));
  answer(response(404, "{}"));
  answer_events(stored(0, 1));
  begin();
  run_until([&] { return status(0).state == FeedState::Broken; });
  EXPECT_THAT(lines, AllOf(HasSubstr("kv_poll_failed"), HasSubstr("event_buffer_max_size")));
  const std::string once = lines;
  run_until([&] { return status(0).state == FeedState::Live; });
  EXPECT_EQ(lines, once);
}

TEST_F(EventPollTest, WhatCannotBeReadIsBrokenUntilSomethingCan) {
  answer_events(stored(0, 1));
  answer(response(200, "[{\"event_id\":1,"));
  answer_events("");
  begin();
  run_until([&] { return status(0).state == FeedState::Broken; });
  EXPECT_EQ(status(0).tally.malformed_batches, 1U);
  run_until([&] { return status(0).state == FeedState::Live; });
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(EventPollTest, SurvivesALostConnection) {
  answer_events(stored(0, 1));
  answer("");
  answer("");  // the exchange tries a fresh connection by itself
  answer_events(stored(1, 2));
  begin();
  run_until([&] { return status(0).state == FeedState::Broken; });
  EXPECT_EQ(blocks(), 1U);
  run_until([&] { return blocks() == 2; });
  EXPECT_EQ(status(0).state, FeedState::Live);
  EXPECT_EQ(status(0).lost, 0U);
}

TEST_F(EventPollTest, KeepsWhatItKnowsWhereThisMachineHasNoDescriptorsToAsk) {
  answer_events(stored(0, 1));
  begin();
  run_until([&] { return blocks() == 1; });
  {
    const test::NoDescriptors none;
    answer("");  // a fresh connection is needed
    run_until([&] {
      const std::lock_guard lock(mutex);
      return answers.empty();
    });
    run_for(50ms);
    EXPECT_EQ(status(0).state, FeedState::Live);
    EXPECT_EQ(blocks(), 1U);
  }
  answer_events(stored(1, 2));
  run_until([&] { return blocks() == 2; });
  EXPECT_EQ(lines, "");
}

TEST_F(EventPollTest, EventsThatTheEngineDroppedAreAGap) {
  answer_events(stored(0, 1));
  answer_events(stored(5, 2));
  begin();
  run_until([&] { return status(0).lost == 4; });
  EXPECT_EQ(status(0).state, FeedState::Gap);
  EXPECT_EQ(status(0).gaps, 1U);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(EventPollTest, ARestartedEngineStartsAnew) {
  answer_events(stored(0, 1) + "," + stored(1, 2));
  answer_events(stored(0, 3));
  begin();
  run_until([&] { return status(0).restarts == 1; });
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(status(0).state, FeedState::Live);
}

// Each rank counts for itself, and one that has nothing to tell yet is new as well.
TEST_F(EventPollTest, ARestartIsOneOfAllRanks) {
  answer_events(stored(0, 1, 0) + "," + stored(0, 2, 1) + "," + stored(1, 3, 1));
  answer_events(stored(0, 4, 0));
  begin(2);
  run_until([&] { return status(0).restarts == 1; });
  EXPECT_EQ(blocks(0), 1U);
  EXPECT_EQ(blocks(1), 0U);
  EXPECT_EQ(status(1).restarts, 1U);
  EXPECT_FALSE(status(1).position);
}

TEST_F(EventPollTest, ACacheThatIsMadeAnewIsEmpty) {
  const std::string created = R"({"event_id":3,"data":{"type":"created"}})";
  answer_events(stored(1, 1) + "," + stored(2, 2));
  answer_events(created);
  begin();
  run_until([&] { return status(0).restarts == 1; });
  EXPECT_EQ(blocks(), 0U);
}

// An answer empties the server's buffer, so all that it is are told of one.
TEST_F(EventPollTest, AllWorkersThatAServerIsHearTheSame) {
  answer_events(stored(0, 1));
  answer_events(stored(1, 2) + "," + stored(2, 3));
  begin();
  join(2);
  run_until([&] { return blocks(0, 2) == 3; });
  EXPECT_EQ(blocks(0, 1), 3U);
  EXPECT_EQ(status(0, 2).holder, (Holder{{2}, 0}));
  EXPECT_EQ(status(0, 2).state, FeedState::Live);
  poll->leave({2});
  EXPECT_FALSE(poll->closed());
  EXPECT_EQ(poll->status({{2}, 0}), nullptr);
  answer_events(removed(3, 1));
  run_until([&] { return blocks(0, 1) == 2; });
  EXPECT_EQ(blocks(0, 2), 3U);
  poll->leave({1});
  EXPECT_TRUE(poll->closed());
}

TEST_F(EventPollTest, WhoJoinsLaterKnowsWhatTheOthersHeard) {
  answer_events(stored(0, 1) + "," + stored(1, 2));
  begin();
  run_until([&] { return blocks() == 2; });
  join(2);
  EXPECT_EQ(blocks(0, 2), 2U);
  EXPECT_EQ(status(0, 2).state, FeedState::Live);
  EXPECT_EQ(status(0, 2).shape, (BlockShape{.size = 4}));
  answer_events(removed(2, 1));
  run_until([&] { return blocks(0, 2) == 1; });
  EXPECT_EQ(status(0, 2).lost, 0U);
  EXPECT_EQ(status(0, 2).restarts, 0U);
}

TEST_F(EventPollTest, WhereNobodyListensAnyMoreNothingIsHeld) {
  auto first = std::make_unique<FakeEngine>([](test::FakePeer& peer) {
    while (peer.read_request()) peer.write(response(200, "[" + stored(0, 1) + "]"));
  });
  endpoint = first->endpoint();
  begin();
  run_until([&] { return blocks() == 1; });
  first.reset();
  run_until([&] { return blocks() == 0; });
  EXPECT_EQ(status(0).state, FeedState::Broken);
}

TEST_F(EventPollTest, BlocksOfAnotherSizeThanConfiguredAreRefusedAndToldOf) {
  answer_events(stored(0, 1));
  answer_events(stored(1, 2));
  begin();
  join(2, 1, 2);
  run_until([&] { return blocks(0, 1) == 2; });
  EXPECT_EQ(blocks(0, 2), 0U);
  const auto refused = static_cast<std::size_t>(Skipped::BlockSize);
  EXPECT_EQ(status(0, 2).tally.skipped[refused], 2U);
  EXPECT_THAT(lines, AllOf(HasSubstr("feed_block_size"), HasSubstr("\"configured\":2"),
                           HasSubstr("\"told\":4")));
}

TEST_F(EventPollTest, WhatIsAnsweredAfterTheEndDoesNotCount) {
  answer("wait");
  begin();
  run_until([&] { return engine.pauses() == 1; });
  poll->close();
  engine.proceed();
  run_until([&] { return ended; });
  EXPECT_EQ(blocks(), 0U);
  EXPECT_FALSE(status(0).last_batch);
}

TEST_F(EventPollTest, EndsWhileItPauses) {
  begin();
  more_questions(1);
  poll->close();
  run_until([&] { return ended; });
}

}  // namespace
}  // namespace baton::kvcache
