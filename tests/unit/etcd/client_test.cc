// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "etcd/client.h"

#include "libs/base64/base64.h"
#include "unit/etcd/etcd_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace baton::etcd {
namespace {

using std::chrono::steady_clock;
using test::response;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

struct ClientTest : EtcdFixture {};

// ---- keys ----

TEST_F(ClientTest, PutsWithALease) {
  FakeEngine etcd(answering([](const SeenRequest&) { return kPutDone; }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  Reply<std::int64_t> revision;
  run([&]() -> awaitable<void> { revision = co_await client.put("a", "b", 7); });
  EXPECT_EQ(revision, 5);
  ASSERT_THAT(etcd.requests(), SizeIs(1));
  const SeenRequest request = etcd.requests().front();
  EXPECT_TRUE(is_for(request, "/v3/kv/put")) << request.head;
  EXPECT_EQ(request.body, R"({"key":"YQ==","value":"Yg==","lease":"7"})");
  EXPECT_THAT(request.head, Not(HasSubstr("Authorization")));
}

TEST_F(ClientTest, Erases) {
  FakeEngine etcd(answering([](const SeenRequest&) { return kPutDone; }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  run([&]() -> awaitable<void> { EXPECT_TRUE((co_await client.erase("a")).has_value()); });
  EXPECT_TRUE(is_for(etcd.requests().front(), "/v3/kv/deleterange"));
}

// Three pages, whose keys are a, b and c.
TEST_F(ClientTest, ListsAllPagesAtTheRevisionOfTheFirst) {
  std::atomic<int> page = 0;
  FakeEngine etcd(answering([&page](const SeenRequest&) {
    const int number = page++;
    // The cluster goes on meanwhile: each answer comes from a later revision.
    return response(200, fmt::format(R"({{"header":{{"revision":"{}"}},"kvs":[{{"key":"{}"}}]{}}})",
                                     40 + number, base64::encode(std::string(1, "abc"[number])),
                                     number < 2 ? R"(,"more":true)" : ""));
  }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const auto listing = list(client, "");
  ASSERT_TRUE(listing.has_value()) << problem(listing);
  EXPECT_EQ(listing->revision, 40);
  ASSERT_THAT(listing->entries, SizeIs(3));
  EXPECT_EQ(listing->entries[2].key, "c");
  const auto requests = etcd.requests();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_THAT(requests[0].body, HasSubstr(R"("revision":"0")"));
  const std::string after_a = base64::encode(key_after("a"));
  EXPECT_THAT(requests[1].body, AllOf(HasSubstr(fmt::format(R"("key":"{}")", after_a)),
                                      HasSubstr(R"("revision":"40")")));
  EXPECT_THAT(requests[2].body, HasSubstr(R"("revision":"40")"));
}

TEST_F(ClientTest, DoesNotFollowAListingInCircles) {
  FakeEngine etcd(answering([](const SeenRequest&) {
    return response(200, R"({"header":{"revision":"4"},"kvs":[{"key":"YQ=="}],"more":true})");
  }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  EXPECT_THAT(problem(list(client, "")), HasSubstr("out of order"));
}

TEST_F(ClientTest, DoesNotWaitForMoreOfAnEmptyPage) {
  FakeEngine etcd(answering([](const SeenRequest&) {
    return response(200, R"({"header":{"revision":"4"},"more":true})");
  }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  EXPECT_THAT(problem(list(client)), HasSubstr("an empty page"));
}

TEST_F(ClientTest, SaysThatAListingWasCompacted) {
  FakeEngine etcd(answering([](const SeenRequest&) {
    return refused(400, 11, "etcdserver: mvcc: required revision has been compacted");
  }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const auto listing = list(client);
  ASSERT_FALSE(listing.has_value());
  EXPECT_EQ(listing.error().reason, Reason::Compacted);
}

// ---- leases ----

TEST_F(ClientTest, SpeaksOfLeases) {
  FakeEngine etcd(answering([](const SeenRequest& request) {
    if (is_for(request, "/v3/lease/keepalive")) {
      const std::string line = "{\"result\":{\"header\":{},\"ID\":\"77\",\"TTL\":\"9\"}}\n";
      return fmt::format(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
          line.size(), line);
    }
    return response(200, R"({"header":{},"ID":"77","TTL":"10"})");
  }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  run([&]() -> awaitable<void> {
    const auto lease = co_await client.grant(seconds(10));
    EXPECT_TRUE(lease && lease->id == 77 && lease->ttl == seconds(10)) << problem(lease);
    const auto kept = co_await client.keep_alive(77);
    EXPECT_TRUE(kept && *kept == seconds(9)) << problem(kept);
    const auto left = co_await client.time_to_live(77);
    EXPECT_TRUE(left && *left == seconds(10)) << problem(left);
    const auto revoked = co_await client.revoke(77);
    EXPECT_TRUE(revoked) << problem(revoked);
  });
  const auto requests = etcd.requests();
  ASSERT_THAT(requests, SizeIs(4));
  EXPECT_TRUE(is_for(requests[0], "/v3/lease/grant"));
  EXPECT_TRUE(is_for(requests[1], "/v3/lease/keepalive"));
  EXPECT_TRUE(is_for(requests[2], "/v3/lease/timetolive"));
  EXPECT_TRUE(is_for(requests[3], "/v3/lease/revoke"));
  EXPECT_EQ(requests[3].body, R"({"ID":"77"})");
}

TEST_F(ClientTest, FindsALeaseThatIsGoneRevoked) {
  FakeEngine etcd(answering(
      [](const SeenRequest&) { return refused(404, 5, "etcdserver: requested lease not found"); }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  run([&]() -> awaitable<void> { EXPECT_TRUE((co_await client.revoke(77)).has_value()); });
  const auto put_with_it = put(client);
  ASSERT_FALSE(put_with_it.has_value());
  EXPECT_EQ(put_with_it.error().reason, Reason::NotFound);
}

// ---- endpoints ----

TEST_F(ClientTest, TakesTheNextEndpointAndStaysThere) {
  FakeEngine etcd(answering([](const SeenRequest&) { return kPutDone; }));
  FakeEngine broken([](FakePeer& peer) { peer.read_request(); });
  Client client(io, deadlines, options({broken.endpoint(), etcd.endpoint()}));
  EXPECT_EQ(put(client), 5);
  EXPECT_EQ(put(client), 5);
  EXPECT_THAT(etcd.requests(), SizeIs(2));
  EXPECT_THAT(broken.requests(), SizeIs(1));
}

TEST_F(ClientTest, LeavesTimeToTheOthersWhereOneIsSilent) {
  FakeEngine mute(silent());
  FakeEngine etcd(answering([](const SeenRequest&) { return kPutDone; }));
  Options made = options({mute.endpoint(), etcd.endpoint()});
  made.timeout = milliseconds(600);
  Client client(io, deadlines, made);
  const auto begun = steady_clock::now();
  EXPECT_EQ(put(client), 5);
  EXPECT_GE(steady_clock::now() - begun, milliseconds(300));
  EXPECT_TRUE(mute.wait_for_drops(1));
}

TEST_F(ClientTest, TakesTheNextEndpointWhereOneIsNotEtcdOrHasNoLeader) {
  FakeEngine page(
      answering([](const SeenRequest&) { return response(200, "<html>hello</html>"); }));
  FakeEngine lonely(
      answering([](const SeenRequest&) { return refused(503, 14, "etcdserver: no leader"); }));
  FakeEngine etcd(answering([](const SeenRequest&) { return kPutDone; }));
  Client client(io, deadlines, options({page.endpoint(), lonely.endpoint(), etcd.endpoint()}));
  EXPECT_EQ(put(client), 5);
  EXPECT_THAT(lonely.requests(), SizeIs(1));
}

TEST_F(ClientTest, DoesNotAskAnotherWhereEtcdSaidNo) {
  FakeEngine etcd(
      answering([](const SeenRequest&) { return refused(400, 3, "etcdserver: too large"); }));
  FakeEngine other(answering([](const SeenRequest&) { return kPutDone; }));
  Client client(io, deadlines, options({etcd.endpoint(), other.endpoint()}));
  const auto reply = put(client);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Refused);
  EXPECT_THAT(problem(reply),
              AllOf(HasSubstr("etcdserver: too large"), HasSubstr(etcd.endpoint().to_string())));
  EXPECT_THAT(other.requests(), SizeIs(0));
}

TEST_F(ClientTest, NamesEveryEndpointThatFailed) {
  const auto first = test::closed_endpoint();
  FakeEngine second(answering([](const SeenRequest&) { return response(404, "Not Found\n"); }));
  Client client(io, deadlines, options({first, second.endpoint()}));
  const auto reply = put(client);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unreachable);
  EXPECT_THAT(problem(reply),
              AllOf(HasSubstr(first.to_string()), HasSubstr("refused"),
                    HasSubstr(second.endpoint().to_string()), HasSubstr("status 404")));
}

// ---- users ----

// An etcd with one user and one token at a time; the token can be changed by the test.
struct GuardedEtcd {
  std::string answer(const SeenRequest& request) const {
    const int valid = token;
    if (is_for(request, "/v3/auth/authenticate")) {
      if (request.body != R"({"name":"root","password":"secret"})")
        return refused(400, 3, "etcdserver: authentication failed, invalid user ID or password");
      return response(200, fmt::format(R"({{"header":{{}},"token":"t{}"}})", valid));
    }
    if (request.head.find(fmt::format("\r\nAuthorization: t{}\r\n", valid)) == std::string::npos)
      return refused(401, 16, "etcdserver: invalid auth token");
    return kPutDone;
  }
  std::atomic<int> token = 1;
  FakeEngine server{answering([this](const SeenRequest& request) { return answer(request); })};
};

TEST_F(ClientTest, LogsInOnce) {
  GuardedEtcd etcd;
  Options made = options({etcd.server.endpoint()});
  made.user = "root";
  made.password = "secret";
  Client client(io, deadlines, made);
  EXPECT_EQ(put(client), 5);
  EXPECT_EQ(put(client), 5);
  EXPECT_THAT(etcd.server.requests(), SizeIs(3));
}

TEST_F(ClientTest, LogsInAgainWhenItsTokenIsRefused) {
  GuardedEtcd etcd;
  Options made = options({etcd.server.endpoint()});
  made.user = "root";
  made.password = "secret";
  Client client(io, deadlines, made);
  EXPECT_EQ(put(client), 5);
  etcd.token = 2;
  EXPECT_EQ(put(client), 5);
}

TEST_F(ClientTest, NamesTheUserButNotThePasswordThatIsWrong) {
  GuardedEtcd etcd;
  Options made = options({etcd.server.endpoint()});
  made.user = "root";
  made.password = "hunter2";
  Client client(io, deadlines, made);
  const auto reply = put(client);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unauthorized);
  EXPECT_THAT(problem(reply), AllOf(HasSubstr("root"), HasSubstr("invalid user ID or password"),
                                    Not(HasSubstr("hunter2"))));
}

TEST_F(ClientTest, SaysThatEtcdWantsAUser) {
  FakeEngine etcd(answering(
      [](const SeenRequest&) { return refused(400, 3, "etcdserver: user name is empty"); }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const auto reply = put(client);
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().reason, Reason::Unauthorized);
  EXPECT_THAT(etcd.requests(), SizeIs(1));
}

TEST_F(ClientTest, DoesWithoutATokenWhereEtcdHasNoUsers) {
  FakeEngine etcd(answering([](const SeenRequest& request) {
    if (is_for(request, "/v3/auth/authenticate"))
      return refused(412, 9, "etcdserver: authentication is not enabled");
    return kPutDone;
  }));
  Options made = options({etcd.endpoint()});
  made.user = "root";
  Client client(io, deadlines, made);
  EXPECT_EQ(put(client), 5);
}

TEST_F(ClientTest, RefusesATokenThatIsNone) {
  FakeEngine etcd(answering([](const SeenRequest&) { return response(200, R"({"header":{}})"); }));
  Options made = options({etcd.endpoint()});
  made.user = "root";
  Client client(io, deadlines, made);
  EXPECT_THAT(problem(put(client)), HasSubstr("`token` is missing"));
}

// ---- whatever comes back ----

TEST_F(ClientTest, SaysWhatIsWrongWithAnAnswer) {
  const auto with = [&](const std::string& bytes) {
    FakeEngine etcd(answering([&bytes](const SeenRequest&) { return bytes; }));
    Client client(io, deadlines, options({etcd.endpoint()}));
    const auto reply = put(client);
    EXPECT_THAT(problem(reply), HasSubstr(etcd.endpoint().to_string()));
    return problem(reply);
  };
  EXPECT_THAT(with(response(200, "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(with(response(200, "{\"header\":")), HasSubstr("not a JSON object"));
  EXPECT_THAT(with(response(200, R"({"header":7})")), HasSubstr("`header` is missing"));
  EXPECT_THAT(with(response(500, "oops")), HasSubstr("status 500"));
  EXPECT_THAT(with("SSH-2.0-OpenSSH_9.2\r\n"), HasSubstr("closed the connection"));
  EXPECT_THAT(with("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"),
              HasSubstr("closed the connection inside its answer"));
  EXPECT_THAT(with(""), HasSubstr("closed the connection before it answered"));
}

TEST_F(ClientTest, DoesNotTakeAnAnswerThatIsTooLarge) {
  FakeEngine etcd(answering([](const SeenRequest&) {
    return "HTTP/1.1 200 OK\r\nContent-Length: 4611686018427387904\r\n\r\n" +
           std::string(200'000, ' ');
  }));
  Options made = options({etcd.endpoint()});
  made.message_bytes = 100'000;
  Client client(io, deadlines, made);
  EXPECT_THAT(problem(put(client)), HasSubstr("larger than 100000 bytes"));
}

// ---- stopping ----

TEST_F(ClientTest, EndsWhatIsUnderWayAndWhatComesLater) {
  FakeEngine mute(silent());
  Client client(io, deadlines, options({mute.endpoint()}));
  std::optional<Reply<std::int64_t>> reply;
  start([&]() -> awaitable<void> { reply = co_await client.put("a", "b", 0); });
  run_until([&] { return mute.connections() == 1; });
  EXPECT_FALSE(reply.has_value());
  client.stop();
  run_until([&] { return reply.has_value(); });
  ASSERT_FALSE(reply->has_value());
  EXPECT_EQ(reply->error().reason, Reason::Stopped);
  const auto later = put(client);
  ASSERT_FALSE(later.has_value());
  EXPECT_EQ(later.error().reason, Reason::Stopped);
  EXPECT_EQ(mute.connections(), 1U);
}

}  // namespace
}  // namespace baton::etcd
