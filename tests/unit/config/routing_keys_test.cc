// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/routing_keys.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::config {
namespace {

// A model whose key is in line 3.
std::string model_with_key(std::string_view key) {
  return fmt::format("models:\n  - name: demo\n    {}\n", key);
}

Routing routing_of(std::string_view key) {
  return accepted(model_with_key(key)).models.at(0).routing;
}

TEST(RoutingKeys, DefaultsAreThoseOfTheReference) {
  const Routing routing = accepted("models:\n  - name: demo").models.at(0).routing;
  EXPECT_EQ(routing, Routing{});
  EXPECT_EQ(routing.cost.overlap_score_credit, 1.0);
  EXPECT_EQ(routing.cost.host_cache_hit_weight, 0.75);
  EXPECT_EQ(routing.cost.disk_cache_hit_weight, 0.25);
  EXPECT_EQ(routing.conditional.max_new_tokens, 2048U);
  EXPECT_EQ(routing.conditional.max_new_share, 0.7);
  EXPECT_TRUE(routing.queue.classes.empty());
}

TEST(RoutingKeys, ObjectivesAreRead) {
  using std::chrono::milliseconds;
  const Routing routing = routing_of(
      "slo: {ttft: 1s, itl: 40ms}\n    queue: {classes: [{name: a}, "
      "{name: b, slo: {itl: 30ms, when_late: queue}}]}");
  EXPECT_EQ(routing.slo,
            (Slo{.ttft = milliseconds(1000), .itl = milliseconds(40), .queue_late = false}));
  EXPECT_EQ(routing.queue.classes.at(0).slo, std::nullopt);
  EXPECT_EQ(routing.queue.classes.at(1).slo,
            (Slo{.ttft = {}, .itl = milliseconds(30), .queue_late = true}));
  EXPECT_EQ(routing.least_itl(), milliseconds(30));
  EXPECT_EQ(Routing{}.least_itl(), milliseconds(0));
  EXPECT_THAT(refused(model_with_key("slo: {when_late: queue}")),
              says("baton.yaml:3: models[0].slo", "promises nothing"));
  EXPECT_THAT(refused(model_with_key("slo: {ttft: 1s, when_late: drop}")),
              says("baton.yaml:3: models[0].slo.when_late", "refuse, queue"));
  EXPECT_THAT(refused(model_with_key("slo: {ttft: 0s}")),
              says("baton.yaml:3: models[0].slo.ttft", ""));
}

TEST(RoutingKeys, ATimeToFirstTokenNeedsSomebodyWhoWaits) {
  const auto with_policy = [](std::string_view more) {
    return fmt::format("models:\n  - name: demo\n    policy: kv\n    slo: {{ttft: 1s}}\n    {}\n",
                       more);
  };
  EXPECT_THAT(refused(with_policy("")), says("baton.yaml:4: models[0].slo", "policy: ttft"));
  EXPECT_TRUE(accepted(with_policy("queue: {busy_threshold: 4}")).models.at(0).routing.slo);
  EXPECT_TRUE(accepted(with_policy("prefill_policy: ttft")).models.at(0).routing.slo);
}

TEST(RoutingKeys, CostsAreRead) {
  const Cost cost = routing_of(
                        "cost: {overlap_score_credit: 0.5, overlap_score_credit_decay: 1, "
                        "prefill_load_scale: 2, decode_active_request_weight: 3.5, "
                        "host_cache_hit_weight: 1, disk_cache_hit_weight: 0, temperature: 0.2, "
                        "track_prefill_tokens: false, track_output_blocks: true, "
                        "prefill_load_model: measured, assume_kv_reuse: false}")
                        .cost;
  Cost expected;
  expected.overlap_score_credit = 0.5;
  expected.overlap_score_credit_decay = 1;
  expected.prefill_load_scale = 2;
  expected.decode_active_request_weight = 3.5;
  expected.host_cache_hit_weight = 1;
  expected.disk_cache_hit_weight = 0;
  expected.temperature = 0.2;
  expected.track_prefill_tokens = false;
  expected.prefill_load_model = PrefillLoadModel::Measured;
  expected.track_output_blocks = true;
  expected.assume_kv_reuse = false;
  EXPECT_EQ(cost, expected);
  EXPECT_THAT(refused(model_with_key("cost: {host_cache_hit_weight: 1.5}")),
              says("baton.yaml:3: models[0].cost.host_cache_hit_weight", "from 0 to 1"));
  EXPECT_THAT(refused(model_with_key("cost: {temperature: -1}")),
              says("baton.yaml:3: models[0].cost.temperature", "from 0 to 1000"));
  EXPECT_THAT(refused(model_with_key("cost: {prefill_load_model: aic}")),
              says("baton.yaml:3: models[0].cost.prefill_load_model", "none, measured"));
  EXPECT_THAT(refused(model_with_key("cost: {temprature: 1}")),
              says("baton.yaml:3: models[0].cost", "did you mean temperature?"));
}

TEST(RoutingKeys, ABypassByLoadMustKnowWhenPrefillIsBusy) {
  EXPECT_EQ(routing_of("conditional_prefill: {policy: isl_bounding}").conditional.policy,
            Bypass::IslBounding);
  EXPECT_THAT(refused(model_with_key("conditional_prefill: {policy: prefill_load}")),
              says("baton.yaml:3: models[0].conditional_prefill", "prefill_busy_threshold"));
  EXPECT_EQ(routing_of("conditional_prefill: {policy: isl_or_load, prefill_busy_threshold: 2}")
                .conditional.prefill_busy_threshold,
            2.0);
  // The queue's own does as well.
  EXPECT_EQ(
      routing_of("conditional_prefill: {policy: prefill_load}\n    queue: {busy_threshold: 4}")
          .conditional.prefill_busy_threshold,
      4.0);
  EXPECT_THAT(refused(model_with_key("conditional_prefill: {policy: isl}")),
              says("baton.yaml:3: models[0].conditional_prefill.policy", "isl_bounding"));
}

TEST(RoutingKeys, AQueueWithoutClassesIsOneClass) {
  const Queue queue = routing_of(
                          "queue: {busy_threshold: 4, order: wspt, requests_per_worker: 16, "
                          "patience: 30s, fair_tenants: false, follow_tokens: 4096}")
                          .queue;
  ASSERT_EQ(queue.classes.size(), 1U);
  EXPECT_EQ(queue.classes[0].name, "default");
  EXPECT_EQ(queue.classes[0].busy_share, 4.0);
  EXPECT_EQ(queue.classes[0].order, QueueOrder::Wspt);
  EXPECT_EQ(queue.classes[0].requests_per_worker, 16U);
  EXPECT_EQ(queue.patience, std::chrono::seconds(30));
  EXPECT_FALSE(queue.fair_tenants);
  EXPECT_EQ(queue.follow_tokens, 4096U);
  EXPECT_THAT(refused(model_with_key("queue: {requests_per_worker: 16}")),
              says("baton.yaml:3: models[0].queue", "never holds a request"));
  // Following others needs no queue.
  EXPECT_TRUE(routing_of("queue: {follow_tokens: 1}").queue.classes.empty());
}

constexpr std::string_view kFamilies =
    "queue: {{default_family: chat, buckets: [{{name: short}}, {{name: long, min_tokens: {}}}], "
    "classes: [{{name: a, family: chat, bucket: short, busy_tokens: 100, quantum: 3}}, "
    "{{name: b, family: chat, bucket: {}}}, {{name: batch, busy_threshold: 1}}{}]}}";

TEST(RoutingKeys, FamiliesAreCompleteOrRefused) {
  const Queue queue = routing_of(fmt::format(kFamilies, 1000, "long", "")).queue;
  ASSERT_EQ(queue.classes.size(), 3U);
  EXPECT_EQ(queue.classes[0].quantum, 3U);
  EXPECT_EQ(queue.classes[0].busy_tokens, 100U);
  EXPECT_EQ(queue.buckets.at(1), (QueueBucket{1000, "long"}));
  EXPECT_TRUE(queue.classes[2].family.empty());

  EXPECT_THAT(refused(model_with_key(fmt::format(kFamilies, 0, "long", ""))),
              says("baton.yaml:3: models[0].queue.buckets[1]", "more min_tokens"));
  EXPECT_THAT(refused(model_with_key(fmt::format(kFamilies, 10, "short", ""))),
              testing::SizeIs(2));  // short has two classes, long none
  EXPECT_THAT(refused(model_with_key(fmt::format(kFamilies, 10, "long", ", {name: a}"))),
              says("baton.yaml:3: models[0].queue.classes[3]", "stands twice"));
  EXPECT_THAT(refused(model_with_key(fmt::format(kFamilies, 10, "long", ", {name: d, family: x}"))),
              testing::Contains(testing::HasSubstr("both a family and a bucket")));
  EXPECT_THAT(refused(model_with_key("queue: {default_family: chat}")),
              says("baton.yaml:3: models[0].queue", "together, or none"));
  EXPECT_THAT(refused(model_with_key("queue: {order: lcfs, classes: [{name: a}]}")),
              says("baton.yaml:3: models[0].queue.order", "by each of the classes"));
}

struct Scale {
  std::string_view key;
  double most;
  double Cost::* member;
};

TEST(RoutingKeys, CostsTakeTheirEndsAndNothingBeyond) {
  const std::vector<Scale> all{
      {"overlap_score_credit", 1000, &Cost::overlap_score_credit},
      {"overlap_score_credit_decay", 1000, &Cost::overlap_score_credit_decay},
      {"prefill_load_scale", 1000, &Cost::prefill_load_scale},
      {"decode_active_request_weight", 1000, &Cost::decode_active_request_weight},
      {"host_cache_hit_weight", 1, &Cost::host_cache_hit_weight},
      {"disk_cache_hit_weight", 1, &Cost::disk_cache_hit_weight},
      {"temperature", 1000, &Cost::temperature},
  };
  for (const auto& [key, most, member] : all) {
    for (const double value : {0.0, most}) {
      EXPECT_EQ(routing_of(fmt::format("cost: {{{}: {}}}", key, value)).cost.*member, value) << key;
    }
    for (const std::string& text :
         {fmt::format("{}", most + 1), std::string("-0.5"), std::string("nan"), std::string("x")}) {
      EXPECT_THAT(refused(model_with_key(fmt::format("cost: {{{}: {}}}", key, text))),
                  testing::ElementsAre(
                      fmt::format("baton.yaml:3: models[0].cost.{}: '{}' is not a number from 0 to "
                                  "{}",
                                  key, text, most)));
    }
  }
}

TEST(RoutingKeys, AKeyOfTheCostChangesNoOther) {
  Cost expected;
  expected.temperature = 0.5;
  EXPECT_EQ(routing_of("cost: {temperature: 0.5}").cost, expected);
  EXPECT_EQ(routing_of("cost: {}").cost, Cost{});
  EXPECT_EQ(routing_of("cost:").cost, Cost{});
}

TEST(RoutingKeys, ABypassHasItsBounds) {
  const ConditionalPrefill read =
      routing_of(
          "conditional_prefill: {policy: isl_or_load, max_new_tokens: 0, max_new_share: 1, "
          "prefill_busy_threshold: 1000, decode_busy_threshold: 0.5}")
          .conditional;
  EXPECT_EQ(read, (ConditionalPrefill{Bypass::IslOrLoad, 0, 1.0, 1000.0, 0.5}));
  for (const auto& [key, message] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"max_new_tokens: -1", "'-1' is not a whole number from 0 to 1000000000000"},
           {"max_new_share: 1.01", "'1.01' is not a number from 0 to 1"},
           {"prefill_busy_threshold: 1001", "'1001' is not a number from 0 to 1000"},
           {"decode_busy_threshold: 2", "'2' is not a number from 0 to 1"}}) {
    EXPECT_THAT(
        refused(model_with_key(fmt::format("conditional_prefill: {{{}}}", key))),
        testing::ElementsAre(fmt::format("baton.yaml:3: models[0].conditional_prefill.{}: {}",
                                         key.substr(0, key.find(':')), message)));
  }
}

TEST(RoutingKeys, ABypassByLoadGoesByTheFirstClass) {
  const Routing routing = routing_of(
      "conditional_prefill: {policy: prefill_load}\n"
      "    queue: {classes: [{name: a, busy_threshold: 3}, {name: b, busy_threshold: 5}]}");
  EXPECT_EQ(routing.conditional.prefill_busy_threshold, 3.0);
  // One that counts tokens says nothing of a share.
  EXPECT_THAT(refused(model_with_key("conditional_prefill: {policy: prefill_load}\n"
                                     "    queue: {busy_tokens: 100}")),
              says("baton.yaml:3: models[0].conditional_prefill", "add prefill_busy_threshold"));
}

TEST(RoutingKeys, QueuesOrderTheirRequests) {
  for (const auto& [name, order] : {std::pair{"fcfs", QueueOrder::Fcfs},
                                    {"lcfs", QueueOrder::Lcfs},
                                    {"wspt", QueueOrder::Wspt},
                                    {"shortest", QueueOrder::Shortest}}) {
    EXPECT_EQ(routing_of(fmt::format("queue: {{busy_tokens: 1, order: {}}}", name))
                  .queue.classes.at(0)
                  .order,
              order);
  }
  EXPECT_THAT(refused(model_with_key("queue: {busy_tokens: 1, order: fifo}")),
              says("baton.yaml:3: models[0].queue.order", "unknown 'fifo'; "));
}

TEST(RoutingKeys, ANumberOfTokensMayBeATrillion) {
  for (const std::string_view key : {"busy_tokens", "requests_per_worker", "tokens_per_worker",
                                     "cached_tokens_per_worker", "follow_tokens"}) {
    accepted(model_with_key(fmt::format("queue: {{busy_threshold: 1, {}: 1000000000000}}", key)));
    EXPECT_THAT(refused(model_with_key(
                    fmt::format("queue: {{busy_threshold: 1, {}: 1000000000001}}", key))),
                testing::ElementsAre(
                    fmt::format("baton.yaml:3: models[0].queue.{}: '1000000000001' is not a whole "
                                "number from 0 to 1000000000000",
                                key)));
  }
}

TEST(RoutingKeys, WaitsMayBeZeroOrUnsaid) {
  EXPECT_EQ(routing_of("queue: {busy_threshold: 1}").queue.longest_wait, std::nullopt);
  EXPECT_EQ(routing_of("queue: {longest_wait: 0s}").queue.longest_wait,
            std::chrono::milliseconds(0));
  EXPECT_EQ(routing_of("queue: {patience: 0s}").queue.patience, std::chrono::milliseconds(0));
  EXPECT_THAT(refused(model_with_key("queue: {longest_wait: -1s}")),
              says("baton.yaml:3: models[0].queue.longest_wait", "must not be below zero"));
}

TEST(RoutingKeys, BucketsBeginAtZeroAndRise) {
  const auto buckets = [](std::string_view list) {
    return model_with_key(
        fmt::format("queue: {{default_family: f, classes: [{{name: a, family: f, bucket: s, "
                    "busy_tokens: 1}}], buckets: [{}]}}",
                    list));
  };
  EXPECT_EQ(accepted(buckets("{name: s}")).models.at(0).routing.queue.buckets,
            (std::vector{QueueBucket{0, "s"}}));
  EXPECT_THAT(refused(buckets("{name: s, min_tokens: 1}")),
              says("baton.yaml:3: models[0].queue.buckets[0]",
                   "is the first, so its min_tokens must be 0"));
  EXPECT_THAT(refused(buckets("{name: s}, {min_tokens: 5}")),
              testing::Contains(
                  testing::HasSubstr("models[0].queue.buckets[1]: has no name; write name: …")));
  EXPECT_THAT(refused(buckets("s")),
              testing::Contains(testing::HasSubstr("models[0].queue.buckets[0]: must be a map")));
}

TEST(RoutingKeys, EachFamilyHasAClassForEachBucket) {
  const auto queue = [](std::string_view classes) {
    return model_with_key(
        fmt::format("queue: {{default_family: f, buckets: [{{name: s}}, {{name: l, min_tokens: "
                    "9}}], classes: [{{name: a, family: f, bucket: s}}, {{name: b, family: f, "
                    "bucket: l}}{}]}}",
                    classes));
  };
  EXPECT_EQ(accepted(queue("")).models.at(0).routing.queue.classes.size(), 2U);
  EXPECT_THAT(refused(queue(", {name: c, family: g, bucket: s}")),
              testing::ElementsAre("baton.yaml:3: models[0].queue.classes: 'l' of family 'g' has 0 "
                                   "classes; give it exactly one"));
  EXPECT_THAT(refused(queue(", {name: c, family: f, bucket: s}")),
              testing::ElementsAre("baton.yaml:3: models[0].queue.classes: 's' of family 'f' has 2 "
                                   "classes; give it exactly one"));
  EXPECT_THAT(refused(queue(", {name: c, family: f, bucket: m}")),
              testing::ElementsAre("baton.yaml:3: models[0].queue.classes: class 'c' is for the "
                                   "bucket 'm', which is not in buckets"));
}

TEST(RoutingKeys, TheDefaultFamilyHasAClass) {
  EXPECT_THAT(refused(model_with_key(
                  "queue: {default_family: g, buckets: [{name: s}], classes: [{name: a, family: f, "
                  "bucket: s}]}")),
              testing::ElementsAre("baton.yaml:3: models[0].queue.default_family: no class has the "
                                   "family 'g'"));
}

TEST(RoutingKeys, ClassesAreAtMostSixtyFour) {
  const auto classes = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format("{{name: c{}}},", i);
    return model_with_key("queue: {classes: [" + list + "]}");
  };
  EXPECT_EQ(accepted(classes(64)).models.at(0).routing.queue.classes.size(), 64U);
  EXPECT_THAT(refused(classes(65)),
              testing::ElementsAre("baton.yaml:3: models[0].queue.classes: has more than 64 "
                                   "entries; remove some"));
}

TEST(RoutingKeys, AClassHasANameAndAQuantum) {
  EXPECT_THAT(refused(model_with_key("queue: {classes: [{quantum: 0}]}")),
              testing::UnorderedElementsAre(
                  "baton.yaml:3: models[0].queue.classes[0].quantum: '0' is not a whole number "
                  "from 1 to 1000000000000",
                  "baton.yaml:3: models[0].queue.classes[0]: has no name; write name: …"));
  EXPECT_EQ(routing_of("queue: {classes: [{name: a}]}").queue.classes.at(0).quantum, 1U);
}

TEST(RoutingKeys, WhatClassesSayForThemselvesIsNotSaidForTheQueue) {
  for (const std::string_view key :
       {"order: fcfs", "busy_threshold: 1", "busy_tokens: 1", "requests_per_worker: 1",
        "tokens_per_worker: 1", "cached_tokens_per_worker: 1"}) {
    EXPECT_THAT(
        refused(model_with_key(fmt::format("queue: {{{}, classes: [{{name: a}}]}}", key))),
        testing::ElementsAre(fmt::format(
            "baton.yaml:3: models[0].queue.{}: is said by each of the classes; remove it here",
            key.substr(0, key.find(':')))));
  }
}

TEST(RoutingKeys, AClassWithAnObjectiveNeedsAQueueWhereNobodyForecasts) {
  const auto kv = [](std::string_view key) {
    return fmt::format("models:\n  - name: demo\n    policy: kv\n    {}\n", key);
  };
  EXPECT_THAT(refused(kv("queue: {classes: [{name: a, slo: {ttft: 1s}}]}")),
              says("baton.yaml:2: models[0].slo", "no request waits for a worker"));
  accepted(kv("queue: {classes: [{name: a, busy_tokens: 1, slo: {ttft: 1s}}]}"));
  accepted(kv("slo: {itl: 40ms}"));  // promises no first token
  // Each class has its own, so the model's is nobody's.
  accepted(kv("slo: {ttft: 1s}\n    queue: {classes: [{name: a, slo: {itl: 1s}}]}"));
}

TEST(LeastItl, IsTheShortestThatIsPromisedToAnybody) {
  using std::chrono::milliseconds;
  Routing routing;
  const auto promise = [](int itl) { return Slo{.ttft = {}, .itl = milliseconds(itl)}; };
  routing.queue.classes.resize(3);
  routing.queue.classes[1].slo = promise(50);
  EXPECT_EQ(routing.least_itl(), milliseconds(50));
  routing.slo = promise(60);
  EXPECT_EQ(routing.least_itl(), milliseconds(50));
  routing.queue.classes[2].slo = promise(20);
  EXPECT_EQ(routing.least_itl(), milliseconds(20));
  routing.queue.classes[0].slo = Slo{.ttft = milliseconds(1)};
  EXPECT_EQ(routing.least_itl(), milliseconds(20));
}

}  // namespace
}  // namespace baton::config
