// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace baton::scheduling {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Lines = std::initializer_list<std::pair<std::string_view, std::string_view>>;

Result<Hints> read(Lines lines, std::string_view body = "{}", Trusted trusted = Trusted::Yes,
                   std::vector<std::string> session_fields = {}) {
  wire::Headers headers;
  for (const auto& [name, value] : lines) headers.add(name, value);
  return read_hints(headers, wire::JsonObject::parse(body).value(), trusted, session_fields);
}

Hints accepted(Lines lines, std::string_view body = "{}", Trusted trusted = Trusted::Yes,
               std::vector<std::string> session_fields = {}) {
  auto hints = read(lines, body, trusted, std::move(session_fields));
  if (hints) return *std::move(hints);
  ADD_FAILURE() << hints.error().message();
  return {};
}

std::string refused(Lines lines, std::string_view body = "{}", Trusted trusted = Trusted::Yes) {
  const auto hints = read(lines, body, trusted);
  if (hints) {
    ADD_FAILURE() << "accepted";
    return "";
  }
  EXPECT_EQ(hints.error().code(), Errc::InvalidRouting);
  return hints.error().message();
}

TEST(Hints, AreNoneWhereNothingIsSaid) {
  EXPECT_EQ(accepted({{"Content-Type", "application/json"}, {"X-Request-Id", "r"}, {"x", "y"}}),
            Hints{});
}

TEST(Hints, KnowEveryHeader) {
  const Hints hints = accepted({{"X-Baton-Worker-Instance-Id", "d1"},
                                {"x-baton-prefill-instance-id", "p1"},
                                {"x-baton-dp-rank", "3"},
                                {"x-baton-prefill-dp-rank", "1"},
                                {"x-baton-request-priority", "-5"},
                                {"x-baton-request-strict-priority", "7"},
                                {"x-tenant-id", "acme"},
                                {"x-baton-meta-Policy-Class", "batch"},
                                {"x-baton-session-id", "s"},
                                {"x-baton-parent-session-id", "parent"},
                                {"x-baton-session-final", "true"},
                                {"x-baton-request-id", "r"}});
  Hints expected;
  expected.decode = Pin{"d1", 3};
  expected.prefill = Pin{"p1", 1};
  expected.priority = -5;
  expected.strict_priority = 7;
  expected.tenant = "acme";
  expected.metadata = {{"policy-class", "batch"}};
  expected.session_id = "s";
  expected.parent_session_id = "parent";
  expected.session_final = true;
  expected.request_id = "r";
  EXPECT_EQ(hints, expected);
}

TEST(Hints, TakeTheNamesOfDynamoAndOlderOnes) {
  for (const char* worker : {"x-dynamo-worker-instance-id", "x-worker-instance-id"}) {
    for (const char* rank : {"x-dynamo-dp-rank", "x-dp-rank", "x-data-parallel-rank"}) {
      EXPECT_EQ(accepted({{worker, "w"}, {rank, "2"}}).decode, (Pin{"w", 2})) << worker << rank;
    }
  }
  for (const char* worker : {"x-dynamo-prefill-instance-id", "x-prefill-instance-id"}) {
    for (const char* rank : {"x-dynamo-prefill-dp-rank", "x-prefill-dp-rank"}) {
      EXPECT_EQ(accepted({{worker, "w"}, {rank, "2"}}).prefill, (Pin{"w", 2})) << worker << rank;
    }
  }
  const Hints hints = accepted({{"x-dynamo-request-priority", "1"},
                                {"x-dynamo-request-strict-priority", "2"},
                                {"x-dynamo-meta-a", "b"},
                                {"x-dynamo-session-id", "s"},
                                {"x-dynamo-parent-session-id", "t"},
                                {"x-dynamo-session-final", "true"},
                                {"x-dynamo-request-id", "r"}});
  EXPECT_EQ(hints.priority, 1);
  EXPECT_EQ(hints.strict_priority, 2U);
  EXPECT_THAT(hints.metadata, ElementsAre(Pair("a", "b")));
  EXPECT_EQ(hints.session_id + hints.parent_session_id + hints.request_id, "str");
  EXPECT_TRUE(hints.session_final);
}

TEST(Hints, UnderTwoNamesMustAgree) {
  EXPECT_EQ(accepted({{"x-baton-worker-instance-id", "w"}, {"x-worker-instance-id", "w"}}).decode,
            (Pin{"w", std::nullopt}));
  EXPECT_THAT(refused({{"x-baton-worker-instance-id", "w"}, {"x-worker-instance-id", "v"}}),
              AllOf(HasSubstr("x-baton-worker-instance-id"), HasSubstr("x-worker-instance-id")));
  EXPECT_THAT(refused({{"x-dp-rank", "1"}, {"X-Dp-Rank", "2"}}),
              HasSubstr("x-dp-rank stands twice"));
  EXPECT_THAT(refused({{"x-baton-meta-a", "1"}, {"x-dynamo-meta-A", "2"}}),
              AllOf(HasSubstr("x-baton-meta-a"), HasSubstr("x-dynamo-meta-A")));
}

TEST(Hints, TheBackendServesPrefillTooWhereNothingElseIsNamed) {
  const Hints one = accepted({{"x-baton-worker-instance-id", "w"}, {"x-baton-dp-rank", "4"}});
  EXPECT_EQ(one.decode, (Pin{"w", 4}));
  EXPECT_EQ(one.prefill, (Pin{"w", 4}));
  const Hints two = accepted({{"x-baton-worker-instance-id", "w"},
                              {"x-baton-prefill-instance-id", "p"},
                              {"x-baton-dp-rank", "4"}});
  EXPECT_EQ(two.decode, (Pin{"w", 4}));
  EXPECT_EQ(two.prefill, (Pin{"p", 4}));
  const Hints prefill_only = accepted({{"x-baton-prefill-instance-id", "p"}});
  EXPECT_EQ(prefill_only.decode, std::nullopt);
  EXPECT_EQ(prefill_only.prefill, (Pin{"p", std::nullopt}));
}

TEST(Hints, HeadersOverrideTheBody) {
  const std::string body =
      R"({"nvext":{"backend_instance_id":"b","decode_worker_id":"d","prefill_worker_id":"p",)"
      R"("dp_rank":1,"prefill_dp_rank":2}})";
  const Hints from_body = accepted({}, body);
  EXPECT_EQ(from_body.decode, (Pin{"d", 1}));
  EXPECT_EQ(from_body.prefill, (Pin{"p", 2}));
  const Hints overridden = accepted({{"x-baton-worker-instance-id", "w"},
                                     {"x-baton-prefill-instance-id", "q"},
                                     {"x-baton-dp-rank", "3"},
                                     {"x-baton-prefill-dp-rank", "4"}},
                                    body);
  EXPECT_EQ(overridden.decode, (Pin{"w", 3}));
  EXPECT_EQ(overridden.prefill, (Pin{"q", 4}));
}

TEST(Hints, ARankThatMeansUnsetIsNone) {
  const Hints hints =
      accepted({{"x-baton-worker-instance-id", "w"}, {"x-baton-dp-rank", "4294967295"}});
  EXPECT_EQ(hints.decode, (Pin{"w", std::nullopt}));
  EXPECT_EQ(accepted({{"x-baton-dp-rank", "4294967295"}}), Hints{});
}

TEST(Hints, NumbersThatAreNoneNameTheirHeader) {
  for (const char* rank :
       {"one", "-1", "1.0", "1 2", "4294967296", "99999999999999999999", "0x1"}) {
    EXPECT_THAT(refused({{"x-baton-worker-instance-id", "w"}, {"x-dp-rank", rank}}),
                HasSubstr("x-dp-rank must be"))
        << rank;
    EXPECT_THAT(refused({{"x-baton-prefill-instance-id", "w"}, {"x-prefill-dp-rank", rank}}),
                HasSubstr("x-prefill-dp-rank must be"));
  }
  EXPECT_THAT(refused({{"x-baton-request-priority", "2147483648"}}),
              HasSubstr("x-baton-request-priority must be a whole number"));
  EXPECT_THAT(refused({{"x-baton-request-strict-priority", "-1"}}),
              HasSubstr("x-baton-request-strict-priority must be a whole number"));
  EXPECT_THAT(refused({{"x-baton-session-final", "yes"}}),
              HasSubstr("x-baton-session-final must be true or false"));
  EXPECT_FALSE(accepted({{"x-baton-session-final", "false"}}).session_final);
}

TEST(Hints, ARankWithoutAWorkerSaysNothing) {
  EXPECT_THAT(refused({{"x-baton-dp-rank", "1"}}), HasSubstr("x-baton-worker-instance-id"));
  EXPECT_THAT(refused({{"x-baton-prefill-dp-rank", "1"}}),
              HasSubstr("x-baton-prefill-instance-id"));
}

TEST(Hints, WithoutAValueAreAbsent) {
  EXPECT_EQ(accepted({{"x-baton-worker-instance-id", ""}, {"x-baton-dp-rank", ""}}), Hints{});
}

TEST(Hints, AreBounded) {
  const std::string longest(256, 'x');
  const std::string too_long(257, 'x');
  EXPECT_EQ(accepted({{"x-baton-session-id", longest}}).session_id, longest);
  for (const char* name : {"x-baton-session-id", "x-baton-worker-instance-id", "x-tenant-id",
                           "x-baton-meta-a", "x-baton-request-id"}) {
    EXPECT_THAT(refused({{name, too_long}}), AllOf(HasSubstr(name), HasSubstr("longer than 256")));
  }
  wire::Headers many;
  for (int i = 0; i < 65; ++i) many.add("x-baton-meta-" + std::to_string(i), "v");
  const auto hints = read_hints(many, wire::JsonObject::parse("{}").value(), Trusted::Yes);
  ASSERT_FALSE(hints);
  EXPECT_THAT(hints.error().message(), HasSubstr("more than 64"));
}

TEST(Hints, FromTheUntrustedAreLeftOutExceptTheSession) {
  const Hints hints =
      accepted({{"x-baton-worker-instance-id", "w"},
                {"x-worker-instance-id", "another"},  // not even compared
                {"x-baton-prefill-instance-id", "p"},
                {"x-baton-dp-rank", "not a number"},
                {"x-baton-request-priority", "9"},
                {"x-baton-request-strict-priority", "9"},
                {"x-tenant-id", "acme"},
                {"x-baton-meta-a", "b"},
                {"x-baton-request-id", "r"},
                {"x-baton-session-id", "s"},
                {"x-baton-parent-session-id", "t"},
                {"x-baton-session-final", "true"}},
               R"({"nvext":{"annotations":["query_instance_id"],"backend_instance_id":[],)"
               R"("allowed_worker_ids":[],"routing_constraints":{"required_taints":["a"]},)"
               R"("router":{"overlap_score_credit":0}}})",
               Trusted::No);
  Hints expected;
  expected.session_id = "s";
  expected.parent_session_id = "t";
  expected.session_final = true;
  EXPECT_EQ(hints, expected);
  EXPECT_THAT(
      refused({{"x-baton-session-id", "a"}, {"x-dynamo-session-id", "b"}}, "{}", Trusted::No),
      HasSubstr("different values"));
}

TEST(Hints, TheSessionMayStandInTheBodyWhereConfigured) {
  const std::string body = R"({"user":"u","session_id":"s"})";
  EXPECT_EQ(accepted({}, body, Trusted::No).session_id, "");
  EXPECT_EQ(accepted({}, body, Trusted::No, {"user"}).session_id, "u");
  EXPECT_EQ(accepted({}, body, Trusted::No, {"session_id", "user"}).session_id, "s");
  EXPECT_EQ(accepted({{"x-baton-session-id", "h"}}, body, Trusted::No, {"user"}).session_id, "h");
}

TEST(Hints, ABodyFieldThatCannotBeASessionIsLeftToTheEngine) {
  const std::string too_long = R"({"user":")" + std::string(257, 'x') + R"(","session_id":"s"})";
  EXPECT_EQ(accepted({}, too_long, Trusted::No, {"user", "session_id"}).session_id, "s");
  EXPECT_EQ(accepted({}, R"({"user":{"id":1}})", Trusted::No, {"user"}).session_id, "");
  EXPECT_EQ(accepted({}, R"({"user":""})", Trusted::No, {"user"}).session_id, "");
}

TEST(Hints, CarryHowWorkersAreWeighed) {
  const Hints hints =
      accepted({}, R"({"nvext":{"router_config_override":{"overlap_score_credit":0.5}}})");
  EXPECT_EQ(hints.cost.overlap_score_credit, 0.5);
  EXPECT_NE(hints, Hints{});
}

}  // namespace
}  // namespace baton::scheduling
