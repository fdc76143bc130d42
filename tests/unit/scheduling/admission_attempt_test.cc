// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/admission_attempt.h"

#include "unit/handoff/handoff_fixture.h"
#include "unit/scheduling/known_prompt_stub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::scheduling {
namespace {

using engine::Api;
using handoff::HandoffFixture;
using handoff::HandoffRequest;
using model::Engine;
using model::Role;
using namespace std::chrono_literals;

constexpr const char* kUnlimitedRequest = R"({"model":"m","prompt":"p","stream":true})";

struct AdmissionAttemptTest : HandoffFixture {
  // One request in the queue, as it is tried by the test.
  struct Visitor {
    Visitor(AdmissionAttemptTest& test, HandoffRequest wanted)
        : job(std::move(wanted)),
          dice([this, &test] {
            // Workers are drawn after another leader was looked for, and before this one leads; the
            // workers are locked meanwhile, so nothing may be booked here.
            if (const auto meanwhile = std::exchange(while_booking, nullptr)) meanwhile();
            return ++test.draws;
          }),
          selector(job, dice),
          attempt(job, selector, test.queue(selector), [&test] { return test.now; }) {
      selector.explain_to(test.decisions.open(job.request_id, "m", job.prompt_tokens));
    }
    Tried try_once(Chance chance = Chance::Usual) {
      return attempt.attempt(its_class, chance).value();
    }

    HandoffRequest job;
    Random dice;
    WorkerSelector selector;
    AdmissionAttempt attempt;
    config::QueueClass its_class;
    std::function<void()> while_booking;
  };

  void serve_two(model::Policy policy) {
    options.policy = policy;
    model::WorkerSpec first = spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80});
    first.name = "a1";
    model::WorkerSpec second = spec(Engine::Vllm, Role::Aggregated, {"10.0.0.2", 80});
    second.name = "a2";
    second.data_parallel_size = 2;
    serve({first, second});
  }
  AdmissionAttempt::Clock::time_point now = AdmissionAttempt::Clock::now();

  std::shared_ptr<PoolQueue> queue(const WorkerSelector& selector) {
    return PoolQueue::of(*selector.pool(), options.routing, selector.first_workers().policy(), "m",
                         io.get_executor(), metrics);
  }
  std::unique_ptr<Visitor> visitor(const std::string& id = "id-1", std::uint64_t tokens = 4096) {
    HandoffRequest wanted = job(engine::Api::Completions, kUnlimitedRequest);
    wanted.request_id = id;
    wanted.prompt_tokens = tokens;
    wanted.observer = std::make_shared<KnownPromptStub>(tokens);
    return std::make_unique<Visitor>(*this, std::move(wanted));
  }
  void wait_where_busy(std::uint64_t tokens) {
    config::QueueClass& one = options.routing.queue.classes.emplace_back();
    one.name = "default";
    one.busy_tokens = tokens;
  }
  std::optional<Waits> foresee(Visitor& visitor) {
    visitor.selector.look_at_prompt();
    return AdmissionAttempt::foresee(visitor.job, visitor.selector);
  }
};

TEST_F(AdmissionAttemptTest, WhoIsBookedLeadsAndTheNextFollows) {
  options.routing.queue.follow_tokens = 1024;
  serve_two(model::Policy::Kv);
  const auto leader = visitor("leader");
  EXPECT_EQ(leader->try_once().what, Attempted::Taken);
  EXPECT_TRUE(leader->attempt.lease());
  const auto follower = visitor("follower");
  const auto other = visitor("other");
  const Tried tried = follower->try_once();
  EXPECT_EQ(tried.what, Attempted::Follows);
  EXPECT_EQ(other->attempt.request().follows()->awaits, tried.awaits);
  EXPECT_EQ(in_flight(), 1);
  leader->attempt.lease() = {};  // it has failed
  EXPECT_EQ(follower->try_once().what, Attempted::Taken);
  EXPECT_TRUE(follower->attempt.lease());
  EXPECT_EQ(other->try_once().awaits, tried.awaits) << "who followed one follows the other";
  now += std::chrono::milliseconds(1);
  follower->attempt.lease().done();
  EXPECT_EQ(other->try_once().what, Attempted::Taken);
  const Waited waited =
      other->attempt.waited({.policy_class = "c", .waited = std::chrono::hours(1)});
  EXPECT_GT(waited.followed.count(), 0);
  EXPECT_EQ(waited.followed + waited.queued, std::chrono::hours(1));
}

TEST_F(AdmissionAttemptTest, NobodyFollowsForLongerThanHalfAMinuteInAll) {
  options.routing.queue.follow_tokens = 1024;
  serve_two(model::Policy::Kv);
  auto leader = visitor("leader");
  leader->try_once();
  const auto follower = visitor("follower");
  EXPECT_EQ(follower->try_once().until, now + std::chrono::seconds(30));
  now += std::chrono::seconds(20);
  EXPECT_EQ(follower->try_once().until, now + std::chrono::seconds(10));
  // Another one fares no better.
  leader = visitor("next leader");
  leader->try_once();
  now += std::chrono::seconds(9);
  EXPECT_EQ(follower->try_once().until, now + std::chrono::seconds(1));
  now += std::chrono::seconds(1);
  EXPECT_EQ(follower->try_once().what, Attempted::Taken);
  EXPECT_FALSE(follower->attempt.lease()) << "somebody else still does";
}

TEST_F(AdmissionAttemptTest, WhoCannotWaitDoesNotFollow) {
  options.routing.queue.follow_tokens = 1024;
  serve_two(model::Policy::Kv);
  const auto leader = visitor("leader");
  leader->try_once();
  const auto fail_fast = visitor("fail-fast");
  EXPECT_EQ(fail_fast->try_once(Chance::Last).what, Attempted::Taken);
  EXPECT_FALSE(fail_fast->attempt.lease());
}

// Two threads may book for the same prompt in the same moment.
TEST_F(AdmissionAttemptTest, WhoWasBookedSecondGivesItBackAndSaysSo) {
  options.routing.queue.follow_tokens = 1024;
  serve_two(model::Policy::Kv);
  const auto second = visitor("second");
  LeaderLease first;
  second->while_booking = [&] {
    const auto chain = second->job.observer->known()->shapes.front().chain;
    first = queue(second->selector)
                ->coalescer()
                ->lead({.hashes = *chain, .cached = 0, .block_tokens = KnownPromptStub::kBlock})
                .value();
  };
  EXPECT_EQ(second->try_once().what, Attempted::Follows);
  EXPECT_TRUE(first);
  EXPECT_EQ(in_flight(), 0);
  const auto decided = decisions.find("second");
  ASSERT_EQ(decided->decisions.size(), 1U);
  EXPECT_THAT(decided->decisions[0].given_back, testing::HasSubstr("another request"));
}

TEST_F(AdmissionAttemptTest, WhoCanGoToTheSameWorkersWaitsForTheSame) {
  wait_where_busy(0);
  serve_two(model::Policy::Kv);
  const auto awaits = [this](Hints wanted) {
    hints = std::move(wanted);
    return visitor()->attempt.request().awaits.what;
  };
  const auto pinned = [](std::string worker, std::optional<std::uint32_t> rank = {}) {
    Hints made;
    made.decode = Pin{std::move(worker), rank};
    return made;
  };
  Hints allowed;
  allowed.allowed = {"a1"};
  Hints required;
  required.constraints.required = {"fast"};
  EXPECT_EQ(awaits({}), awaits({}));
  EXPECT_NE(awaits({}), awaits(allowed));
  EXPECT_NE(awaits({}), awaits(required));
  EXPECT_EQ(awaits(pinned("a1")), awaits(pinned("10.0.0.1:80")));
  EXPECT_NE(awaits(pinned("a1")), awaits(pinned("a2", 0)));
  EXPECT_NE(awaits(pinned("a2", 1)), awaits(pinned("a2", 0)));
}

// Not every prefill worker can be followed by the decode worker that is asked for.
TEST_F(AdmissionAttemptTest, WhoAsksForADecodeWorkerWaitsForOtherPrefillWorkers) {
  wait_where_busy(0);
  options.policy = model::Policy::Kv;
  serve(Engine::Vllm, {{Role::Prefill, {"10.0.0.1", 80}}, {Role::Decode, {"10.0.0.2", 80}}});
  const std::string anybody = visitor()->attempt.request().awaits.what;
  hints.decode = Pin{"10.0.0.2:80", {}};
  const auto pinned = visitor();
  ASSERT_TRUE(pinned->selector.hands_off());
  EXPECT_NE(pinned->attempt.request().awaits.what, anybody);
  // Where it is served alone after all, it waits for that worker.
  pinned->selector.serve_alone(true);
  EXPECT_EQ(pinned->selector.first_workers().role(), Role::Decode);
  EXPECT_NE(pinned->selector.first_pin(), nullptr);
}

// A cache that it cannot go to is of no use.
TEST_F(AdmissionAttemptTest, CountsTheCachesOfItsOwnWorkersOnly) {
  wait_where_busy(0);
  options.policy = model::Policy::Kv;
  model::WorkerSpec first = spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80});
  first.name = "a1";
  model::WorkerSpec second = spec(Engine::Vllm, Role::Aggregated, {"10.0.0.2", 80});
  second.name = "a2";
  second.taints = {"fast"};
  serve({first, second});
  const auto cached = [this](Hints wanted) {
    hints = std::move(wanted);
    const auto prompt = std::make_shared<KnownPromptStub>(4096);
    prompt->cached(*fleet->find_worker("a1"), 1024);
    prompt->cached(*fleet->find_worker("a2"), 512);
    const auto made = visitor();
    made->job.observer = prompt;
    return made->attempt.request().cached_tokens;
  };
  Hints pinned;
  pinned.decode = Pin{"a2", {}};
  Hints allowed;
  allowed.allowed = {"10.0.0.2:80"};
  Hints required;
  required.constraints.required = {"fast"};
  EXPECT_EQ(cached({}), 1024U);
  EXPECT_EQ(cached(pinned), 512U);
  EXPECT_EQ(cached(allowed), 512U);
  EXPECT_EQ(cached(required), 512U);
}

TEST_F(AdmissionAttemptTest, ForeseesThatItGoesAtOnce) {
  serve_two(model::Policy::RoundRobin);
  const auto never = visitor();
  EXPECT_FALSE(AdmissionAttempt::may_wait(never->job, never->selector));
  EXPECT_FALSE(foresee(*never));
}

TEST_F(AdmissionAttemptTest, ForeseesThatItWaitsForWorkers) {
  wait_where_busy(0);
  options.policy = model::Policy::Kv;
  serve({spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80})});
  const auto first = visitor("first");
  EXPECT_TRUE(AdmissionAttempt::may_wait(first->job, first->selector));
  EXPECT_FALSE(foresee(*first));
  first->its_class = options.routing.queue.classes[0];
  ASSERT_EQ(first->try_once().what, Attempted::Taken);
  const auto second = visitor("second");
  const auto waits = foresee(*second);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->what, Waits::For::Workers);
  EXPECT_EQ(waits->ahead, 0U);
  second->its_class = options.routing.queue.classes[0];
  EXPECT_EQ(second->try_once().what, Attempted::Busy) << "as was foreseen";
  EXPECT_EQ(in_flight(), 1);
}

TEST_F(AdmissionAttemptTest, ForeseesThatItWaitsForItsBestWorker) {
  options.policy = model::Policy::Ttft;
  serve({spec(Engine::Vllm, Role::Aggregated, {"10.0.0.1", 80})});
  const auto first = visitor("first", 1'000'000);
  ASSERT_EQ(first->try_once().what, Attempted::Taken);
  const auto second = visitor("second", 100);
  const auto waits = foresee(*second);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->what, Waits::For::Worker);
  EXPECT_EQ(waits->worker->name(), "10.0.0.1:80");
  EXPECT_FALSE(waits->rank);
  second->its_class.late = true;
  const Tried tried = second->try_once();
  EXPECT_EQ(tried.what, Attempted::Busy);
  EXPECT_EQ(tried.awaits.what, std::to_string(waits->worker->id().value) + "/0");
}

// What its one worker has shown, and when its first token is due.
struct DueTest : AdmissionAttemptTest {
  void serve_one() {
    options.routing.slo = config::Slo{.ttft = 1s};
    const model::Endpoint endpoint{"10.0.0.1", 80};
    serve({spec(Engine::Vllm, Role::Aggregated, endpoint)});
    Pace& pace = worker(endpoint).pace(0);
    auto sent = fleet::Clock::now() - 1s;
    for (int i = 0; i < 50; ++i, sent += 10ms) {
      pace.sent(sent);
      pace.computed(sent + 8ms, 1000);
    }
    speed = pace.speed(fleet::Clock::now());
  }
  void expect_ahead(double ahead) {
    const auto one = visitor("id-1", kTokens);
    const QueueRequest request = one->attempt.request();
    ASSERT_TRUE(request.due);
    const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    const double after = speed.seconds(kTokens) + ahead;
    ASSERT_LT(after, 0.5);
    EXPECT_NEAR(seconds(request.due->after), after, 1e-3);
    const double margin = one->attempt.slo()->margin();
    EXPECT_NEAR(seconds(request.due->foreseen_by - request.due->received), margin - after, 1e-3);
    EXPECT_NEAR(seconds(request.due->by - request.due->received), 1 - after, 1e-3);
  }

  static constexpr std::uint64_t kTokens = 4096;
  PrefillSpeed speed;
};

TEST_F(DueTest, AWorkerThatTakesTheNextPromptEarlyHasAnotherOneToCompute) {
  options.policy = model::Policy::Ttft;
  serve_one();
  expect_ahead(0.05);
}

TEST_F(DueTest, AWorkerIsBusyUpToTheLineOfItsQueue) {
  options.policy = model::Policy::Kv;
  wait_where_busy(2000);
  serve_one();
  expect_ahead(speed.seconds_of(2000));
}

TEST_F(AdmissionAttemptTest, ForeseesThatItFollows) {
  options.routing.queue.follow_tokens = 1024;
  serve_two(model::Policy::Kv);
  const auto leader = visitor("leader");
  leader->try_once();
  const auto follower = visitor("follower");
  const auto waits = foresee(*follower);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->what, Waits::For::Request);
}

}  // namespace
}  // namespace baton::scheduling
