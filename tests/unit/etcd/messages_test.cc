// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace baton::etcd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_literals;
using std::chrono::seconds;

// Keys and values in the examples: YQ== a, Yg== b, Yw== c.

// ---- requests ----

TEST(PrefixRange, EndsBehindTheLastKeyOfThePrefix) {
  EXPECT_EQ(prefix_range("/w/").begin, "/w/");
  EXPECT_EQ(prefix_range("/w/").end, "/w0");  // 0 follows /
  EXPECT_EQ(prefix_range("a\xff").end, "b");
}

TEST(PrefixRange, HasNoEndWhereNoKeyCanFollow) {
  EXPECT_EQ(prefix_range("\xff\xff").begin, "\xff\xff");
  EXPECT_EQ(prefix_range("\xff\xff").end, "\0"s);
  EXPECT_EQ(prefix_range("").begin, "\0"s);
  EXPECT_EQ(prefix_range("").end, "\0"s);
}

TEST(PrefixRange, KnowsTheNextKey) { EXPECT_EQ(key_after("a"), "a\0"s); }

TEST(EtcdRequests, AreTheGatewaysJson) {
  EXPECT_EQ(
      encode({.keys = {"a", "b"}, .limit = 5, .revision = 9007199254740993, .keys_only = false}),
      R"({"key":"YQ==","range_end":"Yg==","limit":"5","revision":"9007199254740993","keys_only":false})");
  EXPECT_EQ(encode_put("a", "b", 7), R"({"key":"YQ==","value":"Yg==","lease":"7"})");
  EXPECT_EQ(encode_erase("a"), R"({"key":"YQ=="})");
  EXPECT_EQ(encode_grant(seconds(10)), R"({"TTL":"10"})");
  EXPECT_EQ(encode_lease(7587898923319416584), R"({"ID":"7587898923319416584"})");
  EXPECT_EQ(
      encode_watch({"a", "b"}, 3),
      R"({"create_request":{"key":"YQ==","range_end":"Yg==","start_revision":"3","progress_notify":true}})");
}

TEST(EtcdRequests, EscapeUserAndPassword) {
  EXPECT_EQ(encode_authenticate("u\"", "p\\"), R"({"name":"u\"","password":"p\\"})");
}

// ---- answers ----

TEST(RangeAnswer, HasEntriesWithTheirNumbers) {
  const auto page = decode_range(
      R"({"header":{"cluster_id":"14841639068965178418","revision":"12"},"kvs":[)"
      R"({"key":"YQ==","value":"Yg==","create_revision":"3","mod_revision":"9007199254740993",)"
      R"("version":"2","lease":"7587898923319416584"},{"key":"Yw=="}],"more":true,"count":"9"})");
  ASSERT_TRUE(page.has_value()) << page.error();
  EXPECT_EQ(page->revision, 12);
  EXPECT_TRUE(page->more);
  EXPECT_THAT(page->entries, ElementsAre(KeyValue{.key = "a",
                                                  .value = "b",
                                                  .lease = 7587898923319416584,
                                                  .mod_revision = 9007199254740993,
                                                  .create_revision = 3},
                                         KeyValue{.key = "c", .value = ""}));
}

TEST(RangeAnswer, MayBeEmpty) {
  const auto page = decode_range(R"({"header":{"revision":"1"}})");
  ASSERT_TRUE(page.has_value()) << page.error();
  EXPECT_THAT(page->entries, IsEmpty());
  EXPECT_FALSE(page->more);
}

TEST(RangeAnswer, TakesPlainNumbersAndNull) {
  const auto page = decode_range(R"({"header":{"revision":12},"kvs":null,"more":null})");
  ASSERT_TRUE(page.has_value()) << page.error();
  EXPECT_EQ(page->revision, 12);
}

TEST(RangeAnswer, SaysWhatIsWrongWithIt) {
  const auto problem = [](std::string_view body) {
    const auto page = decode_range(body);
    return page ? std::string("nothing") : page.error();
  };
  const auto with_pair = [](std::string_view pair) {
    return std::string(R"({"header":{"revision":"1"},"kvs":[)").append(pair) + "]}";
  };
  EXPECT_EQ(problem(""), "not a JSON object");
  EXPECT_EQ(problem("<html>"), "not a JSON object");
  EXPECT_EQ(problem("[]"), "not a JSON object");
  EXPECT_EQ(problem(R"({"header":{"revision":"1"},"kvs":[)"), "not a JSON object");
  EXPECT_EQ(problem("{}"), "`header` is missing");
  EXPECT_EQ(problem(R"({"header":[]})"), "`header` is missing");
  EXPECT_EQ(problem(R"({"header":{"revision":"1x"}})"), "`revision` is not a 64-bit number");
  EXPECT_EQ(problem(R"({"header":{"revision":""}})"), "`revision` is not a 64-bit number");
  EXPECT_EQ(problem(R"({"header":{"revision":1.5}})"), "`revision` is not a 64-bit number");
  EXPECT_EQ(problem(R"({"header":{"revision":"99999999999999999999"}})"),
            "`revision` is not a 64-bit number");
  EXPECT_EQ(problem(R"({"header":{},"kvs":{}})"), "`kvs` is not an array");
  EXPECT_EQ(problem(R"({"header":{},"more":"yes"})"), "`more` is neither true nor false");
  EXPECT_EQ(problem(with_pair("7")), "a key-value pair is not an object");
  EXPECT_EQ(problem(with_pair(R"({"key":"a"})")), "`key` is not base64");
  EXPECT_EQ(problem(with_pair(R"({"key":7})")), "`key` is not base64");
  EXPECT_EQ(problem(with_pair(R"({"value":"YQ=="})")), "`key` is missing");
  EXPECT_EQ(problem(with_pair(R"({"key":"YQ==","value":[]})")), "`value` is not base64");
  EXPECT_EQ(problem(with_pair(R"({"key":"YQ==","lease":true})")), "`lease` is not a 64-bit number");
}

TEST(PutAnswer, HasTheRevision) {
  EXPECT_EQ(decode_put(R"({"header":{"revision":"5"}})"), 5);
  EXPECT_FALSE(decode_put(R"({"revision":"5"})").has_value());
}

TEST(LeaseAnswers, HaveTheTimeThatIsLeft) {
  const auto lease = decode_grant(R"({"header":{"revision":"5"},"ID":"77","TTL":"10"})");
  ASSERT_TRUE(lease.has_value()) << lease.error();
  EXPECT_EQ(lease->id, 77);
  EXPECT_EQ(lease->ttl, seconds(10));
  EXPECT_EQ(decode_keep_alive("{\"result\":{\"header\":{},\"ID\":\"77\",\"TTL\":\"9\"}}\n"),
            seconds(9));
  EXPECT_EQ(decode_keep_alive(R"({"result":{"header":{},"ID":"77"}})"), seconds(0));
  EXPECT_EQ(decode_time_to_live(R"({"header":{},"ID":"77","TTL":"-1"})"), seconds(-1));
}

TEST(LeaseAnswers, AreNotTakenFromAnythingElse) {
  EXPECT_FALSE(decode_grant(R"({"header":{},"TTL":"10"})").has_value());
  EXPECT_FALSE(decode_grant(R"({"header":{},"ID":"77"})").has_value());
  EXPECT_FALSE(decode_grant(R"({"ID":"77","TTL":"10"})").has_value());
  // Neither may pass for a lease that is gone.
  EXPECT_FALSE(decode_keep_alive("{}").has_value());
  EXPECT_FALSE(decode_keep_alive(R"({"result":{}})").has_value());
  EXPECT_FALSE(decode_time_to_live("{}").has_value());
  EXPECT_FALSE(decode_keep_alive(R"({"result":{"header":{},"TTL":"soon"}})").has_value());
}

TEST(TokenAnswer, HasAToken) {
  EXPECT_EQ(decode_token(R"({"header":{},"token":"sbEdVzTQjFVClfWL.16"})"), "sbEdVzTQjFVClfWL.16");
  EXPECT_FALSE(decode_token(R"({"header":{}})").has_value());
  EXPECT_FALSE(decode_token(R"({"header":{},"token":5})").has_value());
}

TEST(TokenAnswer, CannotBringHeadersOfItsOwn) {
  EXPECT_FALSE(decode_token(R"({"header":{},"token":"a\r\nHost: b"})").has_value());
}

TEST(DoneAnswer, IsAnAnswerOfEtcd) {
  EXPECT_TRUE(decode_done(R"({"header":{"revision":"4"},"deleted":"1"})").has_value());
  EXPECT_FALSE(decode_done("{}").has_value());
}

// ---- watching ----

TEST(WatchMessages, TellOfPutsAndDeletes) {
  const auto message = decode_watch(
      R"({"result":{"header":{"revision":"9"},"events":[)"
      R"({"kv":{"key":"YQ==","create_revision":"8","mod_revision":"8","version":"1","value":"Yg==","lease":"7"}},)"
      R"({"type":"DELETE","kv":{"key":"Yw==","mod_revision":"9"},"prev_kv":{"key":"Yw=="}}]}})");
  ASSERT_TRUE(message.has_value()) << message.error();
  EXPECT_EQ(message->revision, 9);
  EXPECT_FALSE(message->created || message->canceled);
  EXPECT_THAT(message->events,
              ElementsAre(Event{.kind = Event::Kind::Put,
                                .entry = {.key = "a",
                                          .value = "b",
                                          .lease = 7,
                                          .mod_revision = 8,
                                          .create_revision = 8}},
                          Event{.kind = Event::Kind::Delete,
                                .entry = {.key = "c", .value = "", .mod_revision = 9}}));
}

TEST(WatchMessages, TellOfTheWatchItself) {
  const auto created = decode_watch(R"({"result":{"header":{"revision":"4"},"created":true}})");
  ASSERT_TRUE(created.has_value()) << created.error();
  EXPECT_TRUE(created->created);
  EXPECT_EQ(created->revision, 4);

  const auto compacted =
      decode_watch(R"({"result":{"header":{},"canceled":true,"compact_revision":"4"}})");
  ASSERT_TRUE(compacted.has_value()) << compacted.error();
  EXPECT_TRUE(compacted->canceled);
  EXPECT_EQ(compacted->compact_revision, 4);

  const auto refused = decode_watch(
      R"({"result":{"header":{},"created":true,"canceled":true,"cancel_reason":"no"}})");
  ASSERT_TRUE(refused.has_value()) << refused.error();
  EXPECT_EQ(refused->cancel_reason, "no");
}

TEST(WatchMessages, SayWhatIsWrongWithThem) {
  const auto problem = [](std::string_view line) {
    const auto message = decode_watch(line);
    return message ? std::string("nothing") : message.error();
  };
  EXPECT_EQ(problem("{"), "not a JSON object");
  EXPECT_EQ(problem("{}"), "`result` is missing");
  EXPECT_EQ(problem(R"({"result":{}})"), "`header` is missing");
  EXPECT_EQ(problem(R"({"result":{"header":{},"events":{}}})"), "`events` is not an array");
  EXPECT_EQ(problem(R"({"result":{"header":{},"events":[1]}})"), "an event is not an object");
  EXPECT_EQ(problem(R"({"result":{"header":{},"events":[{}]}})"), "an event's `kv` is missing");
  EXPECT_EQ(problem(R"({"result":{"header":{},"events":[{"type":"MOVE"}]}})"),
            "an event's `type` is neither PUT nor DELETE");
  EXPECT_EQ(problem(R"({"result":{"header":{},"created":1}})"),
            "`created` is neither true nor false");
  EXPECT_EQ(problem(R"({"result":{"header":{},"compact_revision":{}}})"),
            "`compact_revision` is not a 64-bit number");
  EXPECT_EQ(problem(R"({"result":{"header":{},"cancel_reason":{}}})"),
            "`cancel_reason` is not a string");
}

// ---- refusals ----

Reason reason_in(std::string_view body) {
  const auto refusal = find_refusal(body);
  EXPECT_TRUE(refusal.has_value()) << body;
  return refusal ? reason_of(*refusal) : Reason::Stopped;
}

TEST(Refusals, AreFoundInEachOfTheirShapes) {
  for (const std::string_view body :
       {R"({"error":"lease not found","message":"lease not found","code":5})",
        R"({"error":"lease not found","code":5})",
        R"({"error":{"grpc_code":5,"http_code":404,"message":"lease not found"}})",
        R"({"error":{"code":5,"message":"lease not found"}})",
        R"({"code":5,"message":"lease not found","details":[]})"}) {
    const auto refusal = find_refusal(body);
    ASSERT_TRUE(refusal.has_value()) << body;
    EXPECT_EQ(refusal->code, 5);
    EXPECT_EQ(refusal->message, "lease not found");
  }
}

TEST(Refusals, AreNotFoundInOtherAnswers) {
  for (const std::string_view body :
       {"", "Not Found", "{}", R"({"header":{"revision":"1"}})", R"({"result":{"header":{}}})",
        R"({"error":[]})", R"({"message":"hello"})"}) {
    EXPECT_FALSE(find_refusal(body).has_value()) << body;
  }
}

TEST(Refusals, AreCutToALengthForPeople) {
  const auto refusal = find_refusal(R"({"code":5,"error":")" + std::string(100'000, 'x') + "\"}");
  ASSERT_TRUE(refusal.has_value());
  EXPECT_LT(refusal->message.size(), 1000U);
}

TEST(Refusals, OfSomebodyElseAreToldByTheirFirstLine) {
  EXPECT_EQ(foreign_answer("/p", 404, "Not Found\n<hr>"), "/p answered with status 404: Not Found");
  EXPECT_EQ(foreign_answer("/p", 502, "a\x1b[31m\xff"), "/p answered with status 502: a?[31m?");
  EXPECT_EQ(foreign_answer("/p", 502, ""), "/p answered with status 502: nothing more");
  EXPECT_LT(foreign_answer("/p", 502, std::string(100'000, 'x')).size(), 300U);
}

TEST(Refusals, HaveReasons) {
  EXPECT_EQ(reason_in(R"({"error":"etcdserver: requested lease not found","code":5})"),
            Reason::NotFound);
  EXPECT_EQ(reason_in(R"({"error":"etcdserver: no leader","code":14})"), Reason::Unreachable);
  EXPECT_EQ(reason_in(R"({"error":"context deadline exceeded","code":4})"), Reason::Unreachable);
  EXPECT_EQ(
      reason_in(R"({"error":"etcdserver: mvcc: required revision has been compacted","code":11})"),
      Reason::Compacted);
  EXPECT_EQ(
      reason_in(
          R"({"error":"etcdserver: mvcc: required revision is a future revision","code":11})"),
      Reason::Refused);
  EXPECT_EQ(reason_in(R"({"error":"etcdserver: permission denied","code":7})"),
            Reason::Unauthorized);
  EXPECT_EQ(
      reason_in(
          R"({"error":"etcdserver: authentication failed, invalid user ID or password","code":3})"),
      Reason::Unauthorized);
  EXPECT_EQ(reason_in(R"({"error":"etcdserver: request is too large","code":3})"), Reason::Refused);
  EXPECT_EQ(reason_in(R"({"error":"odd","code":99999999999})"), Reason::Refused);
}

TEST(Refusals, TellWhenATokenIsMissing) {
  EXPECT_TRUE(asks_for_token({.code = 16, .message = "etcdserver: invalid auth token"}));
  EXPECT_TRUE(asks_for_token({.code = 3, .message = "etcdserver: user name is empty"}));
  EXPECT_TRUE(asks_for_token({.code = 3, .message = "etcdserver: revision of auth store is old"}));
  EXPECT_FALSE(asks_for_token({.code = 7, .message = "etcdserver: permission denied"}));
  EXPECT_TRUE(knows_no_users({.code = 9, .message = "etcdserver: authentication is not enabled"}));
}

}  // namespace
}  // namespace baton::etcd
