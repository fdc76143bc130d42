// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/etcd/etcd_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {
namespace {

using test::response;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr std::string_view kStreamHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kCreated = "{\"result\":{\"header\":{\"revision\":\"9\"},\"created\":true}}\n";
const std::string kStreamEnd = "0\r\n\r\n";

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

// One event of key a, as a line.
std::string put_line(int revision, int header_revision) {
  return fmt::format(
      "{{\"result\":{{\"header\":{{\"revision\":\"{}\"}},\"events\":"
      "[{{\"kv\":{{\"key\":\"YQ==\",\"mod_revision\":\"{}\"}}}}]}}}}\n",
      header_revision, revision);
}

std::string at_revision(int revision) {
  return response(200, fmt::format(R"({{"header":{{"revision":"{}"}}}})", revision));
}

// Runs `watching` for a watch, and answers everything else by `answer`.
FakeEngine::Script etcd_script(std::function<void(FakePeer&)> watching, Answer answer) {
  return [watching = std::move(watching), answer = std::move(answer)](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    if (is_for(*request, "/v3/watch")) {
      watching(peer);
    } else {
      peer.write(answer(*request));
    }
  };
}

// Sends a stream and closes.
FakeEngine::Script streaming(std::string bytes) {
  return etcd_script(
      [bytes = std::move(bytes)](FakePeer& peer) { peer.write(std::string(kStreamHead) + bytes); },
      [](const SeenRequest&) { return at_revision(9); });
}

struct WatchTest : EtcdFixture {
  using Told = std::vector<std::pair<std::size_t, std::int64_t>>;  // how many events, revision

  Failure watch(Client& client, std::int64_t from = 5) {
    std::optional<Failure> end;
    run([&]() -> awaitable<void> { end = co_await client.watch("a", from, listener()); });
    return end.value_or(Failure{});
  }
  Client::OnEvents listener() {
    return [this](std::vector<Event> events, std::int64_t revision) {
      told.emplace_back(events.size(), revision);
    };
  }
  static Options quick(const model::Endpoint& endpoint, milliseconds timeout = milliseconds(300)) {
    Options made = options({endpoint});
    made.timeout = timeout;
    made.probe_every = milliseconds(20);
    return made;
  }
  Told told;
};

TEST_F(WatchTest, TellsWhenItStandsAndThenOfEvents) {
  FakeEngine etcd(streaming(chunk(kCreated) + chunk(put_line(7, 7))));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const Failure end = watch(client);
  EXPECT_THAT(told, ElementsAre(Pair(0, 4), Pair(1, 7)));
  EXPECT_EQ(end.reason, Reason::Unreachable);
  EXPECT_THAT(end.message, HasSubstr("closed the connection inside its answer"));
  EXPECT_THAT(etcd.requests().front().body,
              HasSubstr(R"("range_end":"Yg==","start_revision":"5")"));
}

// While it catches up, etcd's header is ahead of the events; whoever resumed behind it would miss some.
TEST_F(WatchTest, CountsTheRevisionOfEventsAndNotOfTheHeader) {
  FakeEngine etcd(streaming(chunk(kCreated + put_line(6, 9) + put_line(8, 9))));
  Client client(io, deadlines, options({etcd.endpoint()}));
  watch(client);
  EXPECT_THAT(told, ElementsAre(Pair(0, 4), Pair(1, 6), Pair(1, 8)));
}

TEST_F(WatchTest, TakesASignOfProgress) {
  FakeEngine etcd(
      streaming(chunk(kCreated) + chunk("{\"result\":{\"header\":{\"revision\":\"30\"}}}\n")));
  Client client(io, deadlines, options({etcd.endpoint()}));
  watch(client);
  EXPECT_THAT(told, ElementsAre(Pair(0, 4), Pair(0, 30)));
}

TEST_F(WatchTest, DoesNotCareHowMessagesAreCut) {
  std::string bytes;
  for (const char c : kCreated + put_line(7, 7)) bytes += chunk(std::string(1, c));
  FakeEngine etcd(streaming(bytes));
  Client client(io, deadlines, options({etcd.endpoint()}));
  watch(client);
  EXPECT_THAT(told, ElementsAre(Pair(0, 4), Pair(1, 7)));
}

TEST_F(WatchTest, DoesNotTellOfAnEventThatIsCutOff) {
  FakeEngine etcd(streaming(chunk(kCreated) + chunk(put_line(7, 7).substr(0, 60))));
  Client client(io, deadlines, options({etcd.endpoint()}));
  watch(client);
  EXPECT_THAT(told, SizeIs(1));
}

TEST_F(WatchTest, TellsCompactionFromOtherEnds) {
  FakeEngine etcd(streaming(
      chunk(kCreated) +
      chunk("{\"result\":{\"header\":{},\"canceled\":true,\"compact_revision\":\"8\"}}\n")));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Compacted);
  EXPECT_EQ(end.compact_revision, 8);
}

TEST_F(WatchTest, SaysWhyItWasRefused) {
  FakeEngine etcd(
      streaming(chunk("{\"result\":{\"header\":{},\"created\":true,\"canceled\":true,"
                      "\"cancel_reason\":\"etcdserver: permission denied\"}}\n")));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Unauthorized);
  EXPECT_THAT(end.message, HasSubstr("permission denied"));
  EXPECT_THAT(told, SizeIs(0));
}

TEST_F(WatchTest, EndsWithAnErrorInsideTheStream) {
  FakeEngine etcd(
      streaming(chunk(kCreated) +
                chunk("{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n")));
  Client client(io, deadlines, options({etcd.endpoint()}));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Unreachable);
  EXPECT_THAT(end.message, HasSubstr("no leader"));
}

TEST_F(WatchTest, EndsWithAnErrorInPlaceOfTheStream) {
  FakeEngine etcd(answering(
      [](const SeenRequest&) { return refused(400, 3, "etcdserver: user name is empty"); }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  EXPECT_EQ(watch(client).reason, Reason::Unauthorized);
}

TEST_F(WatchTest, EndsWithWhatIsNotEtcds) {
  FakeEngine page(answering([](const SeenRequest&) { return response(502, "<html>"); }));
  Client client(io, deadlines, options({page.endpoint()}));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Protocol);
  EXPECT_THAT(end.message, HasSubstr("status 502"));

  FakeEngine babbler(streaming(chunk("hello\n")));
  Client other(io, deadlines, options({babbler.endpoint()}));
  EXPECT_THAT(watch(other).message, HasSubstr("not a JSON object"));
}

TEST_F(WatchTest, EndsWhereTheServerEndsTheStream) {
  FakeEngine etcd(streaming(chunk(kCreated) + kStreamEnd));
  Client client(io, deadlines, options({etcd.endpoint()}));
  EXPECT_THAT(watch(client).message, HasSubstr("ended the watch"));
}

TEST_F(WatchTest, DoesNotTakeALineThatIsTooLong) {
  FakeEngine etcd(streaming(chunk(kCreated) + chunk(std::string(5000, ' '))));
  Options made = options({etcd.endpoint()});
  made.message_bytes = 4000;
  Client client(io, deadlines, made);
  EXPECT_THAT(watch(client).message, HasSubstr("larger than 4000 bytes"));
}

TEST_F(WatchTest, TakesTheNextEndpointNextTime) {
  FakeEngine etcd(streaming(chunk(kCreated)));
  Client client(io, deadlines, options({test::closed_endpoint(), etcd.endpoint()}));
  EXPECT_THAT(watch(client).message, HasSubstr("refused"));
  watch(client);
  EXPECT_THAT(told, SizeIs(1));
}

TEST_F(WatchTest, TakesAFreshTokenAlong) {
  std::atomic<int> logins = 0;
  FakeEngine etcd(etcd_script(
      [](FakePeer& peer) { peer.write(std::string(kStreamHead) + chunk(kCreated)); },
      [&logins](const SeenRequest&) {
        return response(200, fmt::format(R"({{"header":{{}},"token":"t{}"}})", ++logins));
      }));
  Options made = options({etcd.endpoint()});
  made.user = "root";
  Client client(io, deadlines, made);
  watch(client);
  watch(client);
  const auto requests = etcd.requests();
  ASSERT_THAT(requests, SizeIs(4));
  EXPECT_THAT(requests[1].head, HasSubstr("\r\nAuthorization: t1\r\n"));
  EXPECT_THAT(requests[3].head, HasSubstr("\r\nAuthorization: t2\r\n"));
}

// ---- servers that keep the connection and say nothing ----

TEST_F(WatchTest, IsLostWhereItNeverStands) {
  FakeEngine mute(silent());
  Client client(io, deadlines, quick(mute.endpoint()));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Unreachable);
  EXPECT_THAT(end.message, HasSubstr("took longer than"));
}

TEST_F(WatchTest, IsLostWhereItsServerNoLongerAnswers) {
  std::atomic<int> probes = 0;
  FakeEngine etcd([&probes](FakePeer& peer) {
    const auto request = peer.read_request();
    if (!request) return;
    if (is_for(*request, "/v3/watch")) peer.write(std::string(kStreamHead) + chunk(kCreated));
    if (is_for(*request, "/v3/kv/range") && ++probes == 1) peer.write(at_revision(9));
    peer.wait_for_drop();
  });
  Client client(io, deadlines, quick(etcd.endpoint(), milliseconds(1000)));
  const Failure end = watch(client);
  EXPECT_EQ(end.reason, Reason::Unreachable);
  EXPECT_EQ(probes, 3);  // one answered, two not
  EXPECT_THAT(end.message, HasSubstr(etcd.endpoint().to_string()));
  EXPECT_TRUE(etcd.wait_for_drops(4));  // the stream is closed too
}

TEST_F(WatchTest, OutlivesASingleProbeThatFails) {
  std::atomic<int> probes = 0;
  FakeEngine etcd(etcd_script(
      [](FakePeer& peer) {
        peer.write(std::string(kStreamHead) + chunk(kCreated));
        peer.wait_for_proceed();
        peer.write(chunk(put_line(7, 7)));
      },
      [&probes](const SeenRequest&) {
        return ++probes % 2 == 1 ? refused(503, 14, "etcdserver: no leader") : at_revision(9);
      }));
  Client client(io, deadlines, quick(etcd.endpoint(), milliseconds(5000)));
  std::optional<Failure> end;
  start([&]() -> awaitable<void> { end = co_await client.watch("a", 5, listener()); });
  run_until([&] { return probes >= 6 || end; });
  EXPECT_FALSE(end.has_value());
  etcd.proceed();
  run_until([&] { return end.has_value(); });
  EXPECT_THAT(told, ElementsAre(Pair(0, 4), Pair(1, 7)));
}

TEST_F(WatchTest, NoticesThatEtcdsDataWasReplaced) {
  FakeEngine etcd(etcd_script(
      [](FakePeer& peer) {
        peer.write(std::string(kStreamHead) + chunk(kCreated));
        peer.wait_for_drop();
      },
      [](const SeenRequest&) { return at_revision(3); }));
  Client client(io, deadlines, quick(etcd.endpoint()));
  const Failure end = watch(client, 1000);
  EXPECT_EQ(end.reason, Reason::Compacted);
  EXPECT_THAT(end.message, HasSubstr("its data was replaced"));
}

// ---- stopping ----

TEST_F(WatchTest, EndsWhenTheClientIsStopped) {
  FakeEngine etcd(etcd_script(
      [](FakePeer& peer) {
        peer.write(std::string(kStreamHead) + chunk(kCreated));
        peer.wait_for_drop();
      },
      [](const SeenRequest&) { return at_revision(9); }));
  Client client(io, deadlines, options({etcd.endpoint()}));
  std::optional<Failure> end;
  start([&]() -> awaitable<void> { end = co_await client.watch("a", 5, listener()); });
  run_until([&] { return !told.empty(); });
  client.stop();
  run_until([&] { return end.has_value(); });
  EXPECT_EQ(end->reason, Reason::Stopped);
  EXPECT_TRUE(etcd.wait_for_drops(1));
  EXPECT_EQ(watch(client).reason, Reason::Stopped);
}

TEST_F(WatchTest, TellsNothingMoreToAListenerThatStoppedIt) {
  FakeEngine etcd(streaming(chunk(kCreated) + chunk(put_line(7, 7))));
  Client client(io, deadlines, options({etcd.endpoint()}));
  int calls = 0;
  std::optional<Failure> end;
  run([&]() -> awaitable<void> {
    end = co_await client.watch("a", 5, [&](std::vector<Event>, std::int64_t) {
      ++calls;
      client.stop();
    });
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(end->reason, Reason::Stopped);
}

}  // namespace
}  // namespace baton::etcd
