// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "net/connection.h"

#include "support/io_fixture.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <thread>

namespace baton::net {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

// A Connection and the bare socket at its other end.
struct ConnectionTest : test::IoFixture {
  ConnectionTest() {
    auto [near, far] = socket_pair();
    connection.emplace(std::move(near), deadlines);
    peer.emplace(std::move(far));
  }

  IoResult read(std::chrono::milliseconds timeout = 5s) {
    IoResult result{};
    run([&]() -> awaitable<void> { result = co_await connection->read_some(buffer, timeout); });
    return result;
  }
  IoResult write(std::string_view text, std::chrono::milliseconds timeout = 5s) {
    const std::array<std::string_view, 1> pieces{text};
    IoResult result{};
    run([&]() -> awaitable<void> { result = co_await connection->write(pieces, timeout); });
    return result;
  }
  void send_from_peer(std::string_view text) { asio::write(*peer, asio::buffer(text)); }

  std::string buffer = std::string(64, '\0');
  std::optional<Connection> connection;
  std::optional<Socket> peer;
};

// More than the kernel takes from one side without the other reading.
std::string flood() { return std::string(32 * 1024 * 1024, 'f'); }

TEST_F(ConnectionTest, ReadsWhatThePeerSends) {
  send_from_peer("hello");
  const IoResult result = read();
  EXPECT_EQ(result.status, IoStatus::Ok);
  EXPECT_EQ(buffer.substr(0, result.size), "hello");
}

TEST_F(ConnectionTest, ReadsWithoutACoroutine) {
  std::optional<IoResult> result;
  connection->start_read(buffer, 5s, [&](IoResult ended) { result = ended; });
  send_from_peer("hello");
  run_until([&] { return result.has_value(); });
  EXPECT_EQ(result->status, IoStatus::Ok);
  EXPECT_EQ(buffer.substr(0, result->size), "hello");
  result.reset();
  connection->start_read(buffer, 100ms, [&](IoResult ended) { result = ended; });
  run_until([&] { return result.has_value(); });
  EXPECT_EQ(result->status, IoStatus::Timeout);
}

TEST_F(ConnectionTest, WritesAllPiecesInOrder) {
  // More pieces than one system call takes, empty ones among them.
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    texts.push_back(i % 7 == 0 ? "" : std::to_string(i) + ";");
    expected += texts.back();
  }
  const std::vector<std::string_view> pieces(texts.begin(), texts.end());
  IoResult result{};
  run([&]() -> awaitable<void> { result = co_await connection->write(pieces, 5s); });
  EXPECT_EQ(result.status, IoStatus::Ok);
  EXPECT_EQ(result.size, expected.size());
  std::string received(expected.size(), '\0');
  asio::read(*peer, asio::buffer(received));
  EXPECT_EQ(received, expected);
}

TEST_F(ConnectionTest, WaitsForAPeerThatReadsSlowly) {
  const std::string large = flood();
  std::string received(large.size(), '\0');
  std::jthread reader([&] { asio::read(*peer, asio::buffer(received)); });
  const IoResult result = write(large);
  reader.join();
  EXPECT_EQ(result.status, IoStatus::Ok);
  EXPECT_EQ(result.size, large.size());
  EXPECT_TRUE(received == large);
}

TEST_F(ConnectionTest, GivesUpOnAPeerThatDoesNotRead) {
  const std::string large = flood();
  const IoResult result = write(large, 100ms);
  EXPECT_EQ(result.status, IoStatus::Timeout);
  EXPECT_LT(result.size, large.size());
  EXPECT_FALSE(connection->usable());
}

TEST_F(ConnectionTest, TellsAnOrderlyEndFromAReset) {
  peer->close();
  EXPECT_EQ(read().status, IoStatus::Closed);
  EXPECT_EQ(read().status, IoStatus::Closed) << "and says so again";
}

TEST_F(ConnectionTest, TellsAReset) {
  peer->set_option(asio::socket_base::linger(true, 0));
  peer->close();
  EXPECT_EQ(read().status, IoStatus::Failed);
  EXPECT_FALSE(connection->error().empty());
  EXPECT_EQ(write("x").status, IoStatus::Failed);
}

TEST_F(ConnectionTest, AReadThatTakesTooLongCanBeFollowedByAnAnswer) {
  EXPECT_EQ(read(50ms).status, IoStatus::Timeout);
  EXPECT_EQ(write("x").status, IoStatus::Timeout) << "nothing works until recovered";
  connection->recover();
  EXPECT_EQ(write("late").status, IoStatus::Ok);
  send_from_peer("again");
  EXPECT_EQ(read().status, IoStatus::Ok);
}

TEST_F(ConnectionTest, AbortEndsAReadUnderWayAndAllLaterOnes) {
  IoResult result{};
  bool ended = false;
  start([&]() -> awaitable<void> {
    result = co_await connection->read_some(buffer, 60s);
    ended = true;
  });
  run_for(10ms);
  EXPECT_FALSE(ended);
  connection->abort();
  run_until([&] { return ended; });
  EXPECT_EQ(result.status, IoStatus::Aborted);
  EXPECT_EQ(read().status, IoStatus::Aborted);
  EXPECT_EQ(write("x").status, IoStatus::Aborted);
  connection->recover();
  EXPECT_EQ(read().status, IoStatus::Aborted) << "only a timeout can be recovered from";
}

TEST_F(ConnectionTest, AbortEndsAWriteUnderWay) {
  const std::string large = flood();
  const std::array<std::string_view, 1> pieces{large};
  IoResult result{};
  bool ended = false;
  start([&]() -> awaitable<void> {
    result = co_await connection->write(pieces, 60s);
    ended = true;
  });
  run_for(10ms);
  EXPECT_FALSE(ended);
  connection->abort();
  run_until([&] { return ended; });
  EXPECT_EQ(result.status, IoStatus::Aborted);
}

TEST_F(ConnectionTest, AfterEndOfWritingWhatThePeerSendsCanBeRead) {
  connection->end_writing();
  boost::system::error_code error;
  std::array<char, 8> sink;
  peer->read_some(asio::buffer(sink), error);
  EXPECT_EQ(error, asio::error::eof);
  send_from_peer("still here");
  EXPECT_EQ(read().size, 10U);
}

TEST_F(ConnectionTest, IsStaleOnceThePeerSentSomethingOrLeft) {
  EXPECT_FALSE(connection->stale());
  send_from_peer("unasked");
  run_until([&] { return connection->stale(); });
  read();
  EXPECT_FALSE(connection->stale());
  peer->close();
  run_until([&] { return connection->stale(); });
}

TEST_F(ConnectionTest, KnowsHowMuchThePeerHasNotAcknowledged) {
  EXPECT_EQ(connection->unacknowledged(), 0U);
  const std::string more_than_its_window(512 * 1024, 'x');
  const std::string_view pieces[] = {more_than_its_window};
  const IoResult written = connection->try_write(pieces);
  EXPECT_GT(connection->unacknowledged(), 0U);
  EXPECT_LE(connection->unacknowledged(), written.size);
  std::array<char, 16 * 1024> sink;
  boost::system::error_code error;
  for (std::size_t read = 0; read < written.size && !error;)
    read += peer->read_some(asio::buffer(sink), error);
  run_until([&] { return connection->unacknowledged() == 0; });
}

struct WatchTest : ConnectionTest {
  void close() {
    run([this]() -> awaitable<void> { co_await connection->close(); });
  }
  int gone = 0;
};

TEST_F(WatchTest, NoticesAPeerThatLeavesWhileNobodyReads) {
  connection->watch_peer([this] { ++gone; });
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(gone, 0);
  peer->close();
  run_until([this] { return gone > 0; });
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(gone, 1);
  close();
}

TEST_F(WatchTest, NoticesAPeerThatLeavesBehindBytesItSentAhead) {
  connection->watch_peer([this] { ++gone; });
  send_from_peer("the next request");
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(gone, 0) << "a request sent ahead is no goodbye";
  peer->close();
  run_until([this] { return gone == 1; });
  EXPECT_EQ(read().size, 16U);
  close();
}

TEST_F(WatchTest, SaysNothingOnceItIsOver) {
  connection->watch_peer([this] { ++gone; });
  run_for(6 * Deadlines::kTick);
  connection->unwatch_peer();
  peer->close();
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(gone, 0);
  close();
}

TEST_F(WatchTest, DoesNotDisturbReadsThatFollow) {
  connection->watch_peer([this] { ++gone; });
  run_for(6 * Deadlines::kTick);
  connection->unwatch_peer();
  send_from_peer("next");
  EXPECT_EQ(read().size, 4U);
  connection->watch_peer([this] { ++gone; });
  peer->close();
  run_until([this] { return gone == 1; });
  close();
}

TEST_F(WatchTest, HasEndedWhenCloseReturns) {
  connection->watch_peer([this] { ++gone; });
  run_for(6 * Deadlines::kTick);
  close();
  connection.reset();  // a watcher that still waited would touch it
  peer->close();
  run_for(6 * Deadlines::kTick);
  EXPECT_EQ(gone, 0);
}

}  // namespace
}  // namespace baton::net
