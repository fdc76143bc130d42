// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/hint_body.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::scheduling {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

BodyHints accepted(std::string_view nvext) {
  const std::string body = fmt::format(R"({{"model":"m","nvext":{}}})", nvext);
  auto hints = read_body_hints(wire::JsonObject::parse(body).value());
  if (hints) return *std::move(hints);
  ADD_FAILURE() << nvext << ": " << hints.error().message();
  return {};
}

std::string refused(std::string_view nvext) {
  const std::string body = fmt::format(R"({{"nvext":{}}})", nvext);
  const auto hints = read_body_hints(wire::JsonObject::parse(body).value());
  if (hints) {
    ADD_FAILURE() << "accepted: " << nvext;
    return "";
  }
  EXPECT_EQ(hints.error().code(), Errc::InvalidRouting);
  return hints.error().message();
}

TEST(BodyHints, IdsAreStringsOrNumbersOfAnySize) {
  EXPECT_EQ(accepted(R"({"backend_instance_id":"w-\u0031"})").backend_worker, "w-1");
  EXPECT_EQ(accepted(R"({"backend_instance_id": 18446744073709551615 })").backend_worker,
            "18446744073709551615");
  EXPECT_EQ(accepted(R"({"prefill_worker_id":7})").prefill_worker, "7");
  EXPECT_EQ(accepted(R"({"decode_worker_id":"7"})").decode_worker, "7");
}

TEST(BodyHints, OfAnotherShapeAreNamed) {
  for (const char* value : {"-1", "1.5", "1e3", "true", "[]", "{}", "\"\""}) {
    for (const char* field : {"backend_instance_id", "prefill_worker_id", "decode_worker_id"}) {
      EXPECT_THAT(refused(fmt::format(R"({{"{}":{}}})", field, value)),
                  HasSubstr(fmt::format("nvext.{}", field)));
    }
  }
  for (const char* value : {"-1", "4294967296", "\"x\"", "1.0", "[1]"}) {
    EXPECT_THAT(refused(fmt::format(R"({{"prefill_dp_rank":{}}})", value)),
                HasSubstr("nvext.prefill_dp_rank"));
  }
  for (const char* nvext : {"[]", "\"a\"", "1", "true"}) {
    EXPECT_THAT(refused(nvext), HasSubstr("nvext must be an object"));
  }
  EXPECT_THAT(refused(R"({"allowed_worker_ids":"w"})"), HasSubstr("nvext.allowed_worker_ids"));
  EXPECT_THAT(refused(R"({"allowed_worker_ids":["w",null]})"),
              HasSubstr("nvext.allowed_worker_ids"));
  EXPECT_THAT(refused(R"({"annotations":"query_instance_id"})"), HasSubstr("nvext.annotations"));
  EXPECT_THAT(refused(R"({"routing_constraints":[]})"), HasSubstr("nvext.routing_constraints"));
  EXPECT_THAT(refused(R"({"routing_constraints":{"required_taints":{}}})"),
              HasSubstr("nvext.routing_constraints.required_taints"));
  for (const char* weights :
       {"[]", R"({"a":"1"})", R"({"a":1e7})", R"({"a":-1e400})", R"({"a":null})", R"({"a":[1]})"}) {
    EXPECT_THAT(
        refused(fmt::format(R"({{"routing_constraints":{{"preferred_taints":{}}}}})", weights)),
        HasSubstr("nvext.routing_constraints.preferred_taints"))
        << weights;
  }
}

TEST(BodyHints, NullIsAbsent) {
  const BodyHints hints = accepted(
      R"({"backend_instance_id":null,"dp_rank":null,"allowed_worker_ids":null,"annotations":null,)"
      R"("routing_constraints":{"required_taints":null,"preferred_taints":null}})");
  EXPECT_EQ(hints.backend_worker, std::nullopt);
  EXPECT_EQ(hints.allowed, std::nullopt);
  EXPECT_TRUE(hints.constraints.empty());
  EXPECT_EQ(accepted("null").rank, std::nullopt);
}

TEST(BodyHints, ARankThatMeansUnsetIsNone) {
  EXPECT_EQ(accepted(R"({"dp_rank":4294967295})").rank, std::nullopt);
  EXPECT_EQ(accepted(R"({"dp_rank":4294967294})").rank, 4294967294U);
  EXPECT_EQ(accepted(R"({"dp_rank":"3"})").rank, 3U);
}

TEST(BodyHints, AnEmptyAllowListIsNotAnAbsentOne) {
  EXPECT_THAT(accepted(R"({"allowed_worker_ids":[ ]})").allowed, Optional(IsEmpty()));
  EXPECT_THAT(accepted(R"({"allowed_worker_ids":[ "a" , 2,"c:1" ]})").allowed,
              Optional(ElementsAre("a", "2", "c:1")));
  EXPECT_EQ(accepted("{}").allowed, std::nullopt);
}

TEST(BodyHints, ConstraintsHaveRequiredAndPreferredTaints) {
  const Constraints constraints = accepted(R"({"routing_constraints" : {"required_taints":["a","b"],
      "preferred_taints": { "c" : 0.5 , "d\n":-2, "c":1.5e-1 } , "other": [1]}})")
                                      .constraints;
  EXPECT_THAT(constraints.required, ElementsAre("a", "b"));
  EXPECT_THAT(constraints.preferred, ElementsAre(Pair("c", 0.15), Pair("d\n", -2.0)));
  EXPECT_TRUE(accepted(R"({"routing_constraints":{"preferred_taints":{}}})").constraints.empty());
}

TEST(BodyHints, AnAnnotationAsksWhoWouldServe) {
  EXPECT_TRUE(accepted(R"({"annotations":["query_instance_id"]})").query_only);
  EXPECT_TRUE(accepted(R"({"annotations":[1,"x","query_instance_id:","y"]})").query_only);
  EXPECT_TRUE(accepted(R"({"annotations":["query_instance_id:anything"]})").query_only);
  EXPECT_FALSE(accepted(R"({"annotations":["query_instance_idx","query",""]})").query_only);
  EXPECT_FALSE(accepted(R"({"annotations":[]})").query_only);
}

TEST(BodyHints, NoAnnotationSwitchesRemotePrefillOff) {
  const BodyHints hints = accepted(R"({"annotations":["x-bypass-remote-prefill"]})");
  EXPECT_FALSE(hints.query_only);
  EXPECT_EQ(hints.backend_worker, std::nullopt);
  EXPECT_TRUE(hints.constraints.empty());
}

TEST(BodyHints, AreBounded) {
  const std::string too_long(257, 'x');
  EXPECT_THAT(refused(fmt::format(R"({{"backend_instance_id":"{}"}})", too_long)),
              HasSubstr("longer than 256"));
  EXPECT_THAT(refused(fmt::format(R"({{"backend_instance_id":"{}"}})", std::string(10'000, 'x'))),
              HasSubstr("longer than 256"));
  EXPECT_THAT(refused(fmt::format(R"({{"routing_constraints":{{"preferred_taints":{{"{}":1}}}}}})",
                                  too_long)),
              HasSubstr("longer than 256"));
  std::string many = "[0";
  std::string weights = "{\"0\":1";
  for (int i = 1; i <= 1024; ++i) {
    many += fmt::format(",{}", i);
    weights += fmt::format(",\"{}\":1", i);
  }
  EXPECT_THAT(refused(fmt::format(R"({{"allowed_worker_ids":{}]}})", many)),
              HasSubstr("more than 1024"));
  EXPECT_THAT(
      refused(fmt::format(R"({{"routing_constraints":{{"preferred_taints":{}}}}}}})", weights)),
      HasSubstr("more than 1024"));
}

TEST(BodyHints, SayHowWorkersAreWeighed) {
  for (const char* name : {"router_config_override", "router"}) {
    const auto cost = accepted(fmt::format(
                                   R"({{"{}":{{"overlap_score_credit":0.5,"prefill_load_scale":2,
        "router_temperature":1e-1,"assume_kv_reuse":false,"track_prefill_tokens":true,"other":7}}}})",
                                   name))
                          .cost;
    EXPECT_EQ(cost.overlap_score_credit, 0.5);
    EXPECT_EQ(cost.prefill_load_scale, 2);
    EXPECT_EQ(cost.temperature, 0.1);
    EXPECT_EQ(cost.assume_kv_reuse, false);
    EXPECT_EQ(cost.track_prefill_tokens, true);
  }
  EXPECT_TRUE(accepted(R"({"router_config_override":null,"router":{}})").cost.empty());
  EXPECT_TRUE(accepted(R"({"router":{"overlap_score_credit":null}})").cost.empty());
  const auto both = accepted(
                        R"({"router":{"overlap_score_credit":2},
                            "router_config_override":{"overlap_score_credit":3,"prefill_load_scale":4}})")
                        .cost;
  EXPECT_EQ(both.overlap_score_credit, 2);
  EXPECT_EQ(both.prefill_load_scale, 4);
}

TEST(BodyHints, NameWhatCannotBeWeighedBy) {
  const std::string prefix = "router_config_override";
  EXPECT_THAT(refused(R"({"router_config_override":7})"), HasSubstr("nvext." + prefix));
  for (const char* field : {"overlap_score_credit", "prefill_load_scale", "router_temperature"}) {
    for (const char* value : {"-0.1", "1000.5", "\"1\"", "true", "1e999", "[]"}) {
      EXPECT_THAT(
          refused(fmt::format(R"({{"{}":{{"{}":{}}}}})", prefix, field, value)),
          HasSubstr(fmt::format("nvext.{}.{} must be a number from 0 to 1000", prefix, field)))
          << value;
    }
  }
  for (const char* field : {"assume_kv_reuse", "track_prefill_tokens"}) {
    for (const char* value : {"1", "\"true\"", "{}"}) {
      EXPECT_THAT(refused(fmt::format(R"({{"router":{{"{}":{}}}}})", field, value)),
                  HasSubstr(fmt::format("nvext.router.{} must be true or false", field)))
          << value;
    }
  }
}

TEST(BodyHints, AgentsSayHowUrgentItIsAndHowMuchTheyExpect) {
  const BodyHints hints =
      accepted(R"({"agent_hints":{"priority":-3,"strict_priority":2,"osl":400,"other":[]}})");
  EXPECT_EQ(hints.priority, -3);
  EXPECT_EQ(hints.strict_priority, 2U);
  EXPECT_EQ(hints.expected_output, 400U);
  EXPECT_EQ(accepted(R"({"agent_hints":null})").expected_output, std::nullopt);
  EXPECT_EQ(accepted(R"({"agent_hints":{"osl":null}})").expected_output, std::nullopt);
  EXPECT_THAT(refused(R"({"agent_hints":7})"), HasSubstr("nvext.agent_hints must be an object"));
  for (const char* value : {"-1", "4294967296", "1.5", "\"7\"", "true", "[]"}) {
    EXPECT_THAT(refused(fmt::format(R"({{"agent_hints":{{"osl":{}}}}})", value)),
                HasSubstr("nvext.agent_hints.osl must be a whole number from 0 to 4294967295"));
  }
}

TEST(BodyHints, ASharedCacheCountsForAShare) {
  EXPECT_EQ(accepted(R"({"router":{"shared_cache_multiplier":0.5}})").cost.shared_cache_multiplier,
            0.5);
  EXPECT_THAT(refused(R"({"router":{"shared_cache_multiplier":1.5}})"),
              HasSubstr("nvext.router.shared_cache_multiplier must be a number from 0 to 1"));
}

TEST(CostOverride, LeavesWhatItDoesNotNameAsConfigured) {
  config::Cost configured;
  configured.overlap_score_credit_decay = 3;
  configured.temperature = 4;
  configured.track_prefill_tokens = false;
  EXPECT_EQ(CostOverride().over(configured), configured);
  CostOverride said;
  said.overlap_score_credit = 0;
  said.prefill_load_scale = 5;
  said.temperature = 0;
  said.assume_kv_reuse = false;
  said.track_prefill_tokens = true;
  const config::Cost cost = said.over(configured);
  EXPECT_EQ(cost.overlap_score_credit, 0);
  EXPECT_EQ(cost.prefill_load_scale, 5);
  EXPECT_EQ(cost.temperature, 0);
  EXPECT_FALSE(cost.assume_kv_reuse);
  EXPECT_TRUE(cost.track_prefill_tokens);
  EXPECT_EQ(cost.overlap_score_credit_decay, 3);
}

}  // namespace
}  // namespace baton::scheduling
