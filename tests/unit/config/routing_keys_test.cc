// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/routing_keys.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

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
              says("baton.yaml:3: models[0].queue", "never holds anybody"));
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

}  // namespace
}  // namespace baton::config
