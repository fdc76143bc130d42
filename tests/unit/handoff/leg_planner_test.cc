// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// When a request gets its workers: at once, when others have been served, or never.
#include "unit/handoff/handoff_fixture.h"
#include "unit/scheduling/book_worker.h"
#include "unit/scheduling/known_prompt_stub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace baton::handoff {
namespace {

using engine::Api;
using test::FakeEngine;
using test::FakePeer;
using test::response;

// Answers each request when the test says so.
FakeEngine::Script when_told() {
  return [](FakePeer& peer) {
    while (peer.read_request()) {
      peer.wait_for_proceed();
      peer.write(response(200, "answer"));
    }
  };
}

struct LegPlannerTest : HandoffFixture {
  struct Client {
    RequestTrace trace;
    Cancellation cancellation;
    std::optional<Result<UpstreamResponse>> answer;
  };

  // One worker that does both, and is busy with a single prompt.
  void serve_one(std::optional<std::size_t> limit = {}) {
    config::QueueClass one;
    one.name = "default";
    one.busy_tokens = 0;
    one.requests_per_worker = limit;
    options.routing.queue.classes = {one};
    serve(Engine::Vllm, {{Role::Aggregated, worker_.endpoint()}});
  }
  HandoffRequest sized_job(std::uint64_t tokens) {
    HandoffRequest made = job(Api::Completions, kRequest);
    made.prompt_tokens = tokens;
    return made;
  }
  void begin(Client& client, HandoffRequest wanted) {
    start([this, &client, wanted]() -> awaitable<void> {
      client.answer.emplace(co_await handoff->run(wanted, client.trace, client.cancellation));
    });
  }
  void wait_for(const Client& client) {
    run_until([&client] { return client.answer.has_value(); });
  }
  void read_all(Client& client) {
    run([&]() -> awaitable<void> {
      while (true) {
        const auto piece = co_await (*client.answer)->stream().read();
        if (!piece || piece->empty()) break;
        (*client.answer)->first_token();
      }
      (*client.answer)->finished();
    });
    client.answer.reset();
  }
  Errc code(const Client& client) const { return client.answer->error().code(); }
  std::size_t waiting() const {
    return static_cast<std::size_t>(
        metrics_value("baton_queue_requests{model=\"m\",class=\"default\"}"));
  }
  double metrics_value(const std::string& name) const {
    const std::string text = metrics.render();
    const auto at = text.find(name + " ");
    return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 1));
  }

  FakeEngine worker_{when_told()};
};

// A request whose prompt is cached but for one block, and the work that has come by it.
struct ArrivalTest : LegPlannerTest {
  void expect_only_new_tokens() {
    constexpr std::uint64_t kTokens = 1024;
    const auto prompt = std::make_shared<scheduling::KnownPromptStub>(kTokens);
    prompt->cached(worker(worker_.endpoint()), kTokens - scheduling::KnownPromptStub::kBlock);
    HandoffRequest wanted = sized_job(kTokens);
    wanted.observer = prompt;
    Client client;
    begin(client, std::move(wanted));
    run_until([this] { return worker_.requests().size() == 1; });
    const auto pools = fleet->find("m")->pools();
    EXPECT_NEAR(pools->front()->work().summary(fleet::Clock::now()).prefill_seconds,
                scheduling::kUnmeasuredSpeed.seconds(scheduling::KnownPromptStub::kBlock), 1e-9);
    worker_.proceed();
    wait_for(client);
    read_all(client);
  }
};

// Regression: the prompt was counted before anybody had looked what of it is cached.
TEST_F(ArrivalTest, WhatIsCachedIsNoWork) {
  options.policy = model::Policy::Kv;
  serve(Engine::Vllm, {{Role::Aggregated, worker_.endpoint()}});
  expect_only_new_tokens();
}

TEST_F(ArrivalTest, WhatIsCachedIsNoWorkInAQueueEither) {
  options.policy = model::Policy::Kv;
  serve_one();
  expect_only_new_tokens();
}

TEST_F(LegPlannerTest, WhoeverFindsAllBusyWaitsForItsTurn) {
  serve_one();
  Client first;
  Client second;
  begin(first, sized_job(100));
  run_until([this] { return worker_.requests().size() == 1; });
  begin(second, sized_job(100));
  run_until([this] { return waiting() == 1; });
  EXPECT_EQ(worker_.requests().size(), 1U);
  worker_.proceed();
  wait_for(first);
  ASSERT_TRUE(*first.answer);
  EXPECT_FALSE(second.answer);
  read_all(first);  // its first token: the prompt is computed
  run_until([this] { return worker_.requests().size() == 2; });
  worker_.proceed();
  wait_for(second);
  ASSERT_TRUE(*second.answer);
  EXPECT_EQ(second.trace.admission.waited.policy_class, "default");
  EXPECT_GT(second.trace.admission.waited.queued.count(), 0);
  EXPECT_EQ(first.trace.admission.waited.queued.count(), 0);
  read_all(second);
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(in_flight(), 0);
}

// The end of its prefill is not seen; it must not count as work until all is answered.
TEST_F(LegPlannerTest, AWholeAnswerHoldsUpNobodyForLongerThanItsPrompt) {
  serve_one();
  HandoffRequest whole = sized_job(100);
  whole.body = engine::ClientBody::parse(R"({"model":"m","prompt":"p","max_tokens":50})").value();
  Client first;
  Client second;
  begin(first, whole);
  run_until([this] { return worker_.requests().size() == 1; });
  begin(second, whole);
  run_until([this] { return worker_.requests().size() == 2; });
  EXPECT_FALSE(first.answer);
  run_until([this] { return worker(worker_.endpoint()).load(0)->prefill_tokens() == 0; });
  EXPECT_EQ(in_flight(), 2);
  worker_.proceed();
  worker_.proceed();
  for (Client* const client : {&first, &second}) {
    wait_for(*client);
    ASSERT_TRUE(*client->answer);
    read_all(*client);
  }
  EXPECT_EQ(in_flight(), 0);
}

// A tenant with many requests waits behind its own.
TEST_F(LegPlannerTest, ClientsWithKeysOfTheirOwnShareTheQueue) {
  serve_one();
  struct Named {
    std::string name;
    Client client = {};
  };
  const auto send = [this](Named& named, const std::string& key, const std::string& tenant = "") {
    HandoffRequest made = sized_job(100);
    made.client = key;
    auto said = std::make_shared<scheduling::Hints>();
    said->tenant = tenant;
    made.hints = said;
    begin(named.client, made);
  };
  std::vector<std::string> order;
  const auto serve_next = [&](std::span<Named> all) {
    worker_.proceed();
    const auto served = [](const Named& one) { return one.client.answer.has_value(); };
    run_until([&] { return std::ranges::any_of(all, served); });
    const auto next = std::ranges::find_if(all, served);
    order.push_back(next->name);
    read_all(next->client);
  };
  std::array<Named, 1> running{{{"running"}}};
  send(running[0], "key 1");
  run_until([this] { return worker_.requests().size() == 1; });
  std::array<Named, 4> waiting_ones{{{"first"}, {"second"}, {"other key"}, {"named tenant"}}};
  send(waiting_ones[0], "key 1");
  send(waiting_ones[1], "key 1");
  send(waiting_ones[2], "key 2");
  send(waiting_ones[3], "key 1", "a");  // what a request says counts more than its key
  run_until([this] { return waiting() == 4; });
  serve_next(running);
  for (std::size_t i = 0; i < waiting_ones.size(); ++i) serve_next(waiting_ones);
  EXPECT_EQ(order.back(), "second") << "the others came later, but it is the flood's second";
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(LegPlannerTest, AFullQueueRefusesAtOnce) {
  serve_one(1);
  Client running;
  Client queued;
  Client refused;
  begin(running, sized_job(100));
  run_until([this] { return worker_.requests().size() == 1; });
  begin(queued, sized_job(100));
  run_until([this] { return waiting() == 1; });
  begin(refused, sized_job(100));
  wait_for(refused);
  ASSERT_FALSE(*refused.answer);
  EXPECT_EQ(code(refused), Errc::QueueFull);
  EXPECT_TRUE(refused.answer->error().retry_after());
  // Also who is turned away is told of: in which line, and why.
  EXPECT_EQ(refused.trace.admission.waited.policy_class, "default");
  EXPECT_EQ(refused.trace.admission.waited.ahead, 1U);
  EXPECT_EQ(refused.trace.admission.waited.refused, refused.answer->error().message());
  EXPECT_EQ(decisions.find("id-1")->waited.refused, refused.answer->error().message());
  worker_.proceed();
  worker_.proceed();
  wait_for(running);
  read_all(running);
  wait_for(queued);
  read_all(queued);
}

TEST_F(LegPlannerTest, AClientThatLeavesTheQueueIsGone) {
  serve_one();
  Client running;
  Client leaving;
  begin(running, sized_job(100));
  run_until([this] { return worker_.requests().size() == 1; });
  begin(leaving, sized_job(100));
  run_until([this] { return waiting() == 1; });
  leaving.cancellation.request(client_gone());
  wait_for(leaving);
  ASSERT_FALSE(*leaving.answer);
  EXPECT_EQ(code(leaving), Errc::ClientGone);
  EXPECT_EQ(waiting(), 0U);
  worker_.proceed();
  wait_for(running);
  read_all(running);
  EXPECT_EQ(worker_.requests().size(), 1U);
}

TEST_F(LegPlannerTest, WhoeverDoesNotWantToWaitIsTold) {
  serve_one();
  Client running;
  Client fail_fast;
  begin(running, sized_job(100));
  run_until([this] { return worker_.requests().size() == 1; });
  HandoffRequest wanted = sized_job(100);
  wanted.max_queue_wait = scheduling::MaxQueueWait::none();
  begin(fail_fast, wanted);
  wait_for(fail_fast);
  ASSERT_FALSE(*fail_fast.answer);
  EXPECT_EQ(code(fail_fast), Errc::WorkersBusy);
  worker_.proceed();
  wait_for(running);
  read_all(running);
}

// A prompt that another request computes is waited for, and not computed twice.
TEST_F(LegPlannerTest, AStampedeFollowsItsFirst) {
  options.routing.queue.follow_tokens = 1024;
  options.policy = model::Policy::Kv;
  serve(Engine::Vllm, {{Role::Aggregated, worker_.endpoint()}});
  const auto cold = std::make_shared<scheduling::KnownPromptStub>(4096);
  const auto wanted = [&](const std::shared_ptr<scheduling::KnownPromptStub>& prompt) {
    HandoffRequest made = sized_job(4096);
    made.observer = prompt;
    return made;
  };
  Client leader;
  Client follower;
  Client other;
  begin(leader, wanted(cold));
  run_until([this] { return worker_.requests().size() == 1; });
  begin(follower, wanted(cold));
  begin(other, sized_job(10));  // nobody knows its prompt: it goes its way
  run_until([this] { return worker_.requests().size() == 2; });
  worker_.proceed();
  worker_.proceed();
  wait_for(leader);
  EXPECT_FALSE(follower.answer);
  read_all(leader);
  run_until([this] { return worker_.requests().size() == 3; });
  worker_.proceed();
  wait_for(follower);
  ASSERT_TRUE(*follower.answer);
  EXPECT_GT(follower.trace.admission.waited.followed.count(), 0);
  read_all(follower);
  wait_for(other);
  read_all(other);
}

// A request that was admitted need not queue again, also if one worker serves it.
TEST_F(LegPlannerTest, AFallbackDoesNotQueueAgain) {
  config::QueueClass one;
  one.name = "default";
  one.busy_tokens = 0;
  options.routing.queue.classes = {one};
  options.on_prefill_failure = model::OnPrefillFailure::Fallback;
  FakeEngine prefill(test::always(response(500, R"({"error":"out of memory"})")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, worker_.endpoint()}});
  scheduling::WorkerRequirements requirements;
  auto prompt = std::make_shared<scheduling::KnownPrompt>();
  prompt->tokens = 1000;
  requirements.prompt = prompt;
  const auto busy = test::book_worker(fleet->find("m")->pool("default")->workers(Role::Decode),
                                      requirements, handoff->random());
  ASSERT_TRUE(busy);
  worker_.proceed();
  Client client;
  HandoffRequest wanted = sized_job(100);
  wanted.max_queue_wait = scheduling::MaxQueueWait::none();
  begin(client, wanted);
  wait_for(client);
  ASSERT_TRUE(*client.answer) << client.answer->error().message();
  read_all(client);
  EXPECT_GE(prefill.requests().size(), 1U);
  EXPECT_EQ(worker_.requests().size(), 1U);
}

TEST_F(LegPlannerTest, WhyIsRemembered) {
  options.policy = model::Policy::Kv;
  serve(Engine::Vllm, {{Role::Aggregated, worker_.endpoint()}});
  worker_.proceed();
  Client client;
  HandoffRequest wanted = sized_job(160);
  auto prompt = std::make_shared<scheduling::KnownPromptStub>(160);
  prompt->cached(worker(worker_.endpoint()), 64);
  wanted.observer = prompt;
  begin(client, wanted);
  wait_for(client);
  read_all(client);
  const auto decided = decisions.find("id-1");
  ASSERT_TRUE(decided);
  ASSERT_EQ(decided->decisions.size(), 1U);
  const scheduling::Choice& choice = decided->decisions[0].choice;
  ASSERT_EQ(choice.candidates.size(), 1U);
  EXPECT_EQ(choice.candidates[0].weight->cached_tokens, 64U);
}

TEST_F(LegPlannerTest, ADecodeWorkerThatHasThePromptServesAlone) {
  options.policy = model::Policy::Kv;
  options.routing.conditional.policy = config::Bypass::IslBounding;
  FakeEngine prefill(test::always(response(200, "{}")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, worker_.endpoint()}});
  worker_.proceed();
  Client client;
  HandoffRequest wanted = sized_job(1600);
  auto prompt = std::make_shared<scheduling::KnownPromptStub>(1600);
  prompt->cached(worker(worker_.endpoint()), 1584);
  wanted.observer = prompt;
  begin(client, wanted);
  wait_for(client);
  ASSERT_TRUE(*client.answer);
  EXPECT_FALSE((*client.answer)->handed_off());
  EXPECT_TRUE(client.trace.bypassed);
  read_all(client);
  EXPECT_EQ(prefill.requests().size(), 0U);
  EXPECT_EQ(worker_.requests().size(), 1U);
  EXPECT_EQ(in_flight(), 0);
}

}  // namespace
}  // namespace baton::handoff
