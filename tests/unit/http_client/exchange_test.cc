// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/exchange.h"

#include "http_client/tls.h"
#include "support/temporary_directory.h"
#include "support/tls_server.h"
#include "unit/http_client/exchange_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

namespace baton::http_client {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::FakeEngine;
using test::FakePeer;
using test::response;
using testing::HasSubstr;

struct ExchangeTest : ExchangeFixture {
  // One whole exchange: the body, or what went wrong.
  Result<std::string> ask(const FakeEngine& worker) { return ask_at(worker.endpoint()); }
  Result<std::string> ask_at(const model::Endpoint& endpoint) {
    Result<std::string> result = fail(Errc::Internal, "did not run");
    run([&]() -> awaitable<void> {
      Exchange once(pool, {id, endpoint}, timeouts);
      const auto taken = co_await once.send(kHead, body);
      if (!taken) {
        result = fail(taken.error());
        co_return;
      }
      status = once.head().status;
      result = co_await once.read_all(limit);
    });
    return result;
  }
  // Sends in the background; `sent` and `answer` are there once it has happened.
  void begin(const model::Endpoint& endpoint) {
    target = endpoint;
    exchange = std::make_unique<Exchange>(pool, Target{id, target}, timeouts);
    start([this]() -> awaitable<void> {
      sent = co_await exchange->send(kHead, body);
      if (*sent) answer = co_await exchange->read_all(limit);
      ended = true;
    });
  }
  void warm_up(const FakeEngine& worker) { EXPECT_EQ(ask(worker).value(), "ok"); }

  model::WorkerId id{1};
  int status = 0;
  std::size_t limit = 1024 * 1024;
  model::Endpoint target;
  std::unique_ptr<Exchange> exchange;
  std::optional<Result<void>> sent;
  std::optional<Result<std::string>> answer;
  bool ended = false;
};

TEST_F(ExchangeTest, AWholeAnswerNeedsRoomInMemory) {
  const std::string text(200'000, 'x');
  const FakeEngine worker(test::always(response(200, text)));
  {
    MemoryShare others(&memory);
    ASSERT_TRUE(others.cover(memory.limit() - 300'000));
    const auto refused = ask(worker);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::MemoryExhausted);
    EXPECT_EQ(memory.used(), others.held());
    EXPECT_EQ(pool.idle_count(), 0U) << "its answer was not read to the end";
  }
  EXPECT_EQ(ask(worker), text);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(ExchangeTest, AnAnswerThatIsKeptLongerKeepsItsMemory) {
  const FakeEngine worker(test::always(response(200, std::string(200'000, 'x'))));
  begin(worker.endpoint());
  run_until([this] { return answer.has_value(); });
  EXPECT_GE(memory.used(), 200'000U);
  const MemoryShare kept = exchange->take_memory();
  exchange.reset();
  EXPECT_EQ(memory.used(), kept.held());
  EXPECT_GE(kept.held(), 200'000U);
}

TEST_F(ExchangeTest, AStreamNeedsNoRoom) {
  const FakeEngine worker(test::always(response(200, std::string(200'000, 'x'))));
  MemoryShare others(&memory);
  ASSERT_TRUE(others.cover(memory.limit()));
  target = worker.endpoint();
  std::size_t bytes = 0;
  run([&]() -> awaitable<void> {
    Exchange once(pool, {id, target}, timeouts);
    const auto taken = co_await once.send(kHead, body);
    EXPECT_TRUE(taken);
    while (true) {
      const auto piece = co_await once.read();
      if (!piece || piece->empty()) co_return;
      bytes += piece->size();
    }
  });
  EXPECT_EQ(bytes, 200'000U);
}

TEST_F(ExchangeTest, SendsHeadAndBodyAndReadsTheAnswer) {
  const FakeEngine worker(test::always(response(200, "hello", "X-A: b\r\n")));
  EXPECT_EQ(ask(worker).value(), "hello");
  EXPECT_EQ(status, 200);
  ASSERT_EQ(worker.requests().size(), 1U);
  EXPECT_EQ(worker.requests()[0].head, kHead);
  EXPECT_EQ(worker.requests()[0].body, "body");
}

TEST_F(ExchangeTest, ReadsChunkedAnswersAndAnswersThatEndWithTheConnection) {
  const FakeEngine chunked(test::always(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
  EXPECT_EQ(ask(chunked).value(), "abcde");
  id = {2};
  const FakeEngine until_close([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\n\r\nall there is");
  });
  EXPECT_EQ(ask(until_close).value(), "all there is");
}

TEST_F(ExchangeTest, ReadsAnAnswerWithoutACoroutineForEachPiece) {
  const FakeEngine worker(test::always(response(200, std::string(200'000, 'x'))));
  exchange = std::make_unique<Exchange>(pool, Target{id, target = worker.endpoint()}, timeouts);
  std::size_t bytes = 0;
  const std::function<void()> go_on = [&] {
    while (const auto piece = exchange->next()) {
      ended = !piece->has_value() || (*piece)->empty();
      if (ended) return;
      bytes += (*piece)->size();
    }
    exchange->receive([&] { go_on(); });
  };
  start([&]() -> awaitable<void> {
    sent = co_await exchange->send(kHead, body);
    go_on();
  });
  run_until([this] { return ended; });
  EXPECT_EQ(bytes, 200'000U);
  EXPECT_TRUE(exchange->done());
}

TEST_F(ExchangeTest, UsesAConnectionAgain) {
  const FakeEngine worker(test::always(response(200, "ok")));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(worker).value(), "ok");
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, DoesNotUseAConnectionAgainThatCannotBeTrusted) {
  const struct {
    const char* why;
    std::string answer;
  } cases[] = {
      {"the worker says it closes", response(200, "ok", "Connection: close\r\n")},
      {"bytes follow the answer", response(200, "ok") + "HTTP/1.1 200 OK\r\n"},
  };
  for (const auto& c : cases) {
    ++id.value;
    const FakeEngine worker(test::always(c.answer));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(ask(worker).value(), "ok") << c.why;
    EXPECT_EQ(worker.connections(), 2U) << c.why;
  }
}

TEST_F(ExchangeTest, ClosesAConnectionWhoseAnswerWasNotReadToItsEnd) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe first bytes");
    peer.wait_for_drop();
  });
  run([&]() -> awaitable<void> {
    const model::Endpoint endpoint = worker.endpoint();
    Exchange half(pool, {id, endpoint}, timeouts);
    EXPECT_TRUE(co_await half.send(kHead, body));
    EXPECT_TRUE(co_await half.read());
  });
  EXPECT_TRUE(worker.wait_for_drops(1));
}

// A worker that lets a second request come in on a kept-alive connection, then ends it.
FakeEngine::Script answers_once_then(std::function<void(FakePeer&)> second) {
  auto connections = std::make_shared<std::atomic<int>>(0);
  return [connections, second](FakePeer& peer) {
    const bool first_connection = connections->fetch_add(1) == 0;
    peer.read_request();
    peer.write(response(200, "ok"));
    if (!first_connection) {
      while (peer.read_request()) peer.write(response(200, "ok"));
      return;
    }
    peer.read_request();
    second(peer);
  };
}

TEST_F(ExchangeTest, ReplacesAKeptConnectionThatDiesWithoutAnAnswer) {
  for (const bool reset : {false, true}) {
    ++id.value;
    const FakeEngine worker(answers_once_then([reset](FakePeer& peer) {
      if (reset) peer.reset();
    }));
    warm_up(worker);
    EXPECT_EQ(ask(worker).value(), "ok");
    EXPECT_EQ(worker.connections(), 2U);
  }
}

// Regression: the next request on the connection got what came late for the one before.
TEST_F(ExchangeTest, NeverTakesForAnAnswerWhatCameBeforeTheRequest) {
  const struct {
    const char* what;
    std::string first, late;
  } cases[] = {
      {"a second answer", response(200, "ok"), response(200, "another's")},
      {"the body of an answer without one", "HTTP/1.1 204 No Content\r\n\r\n", "another's"},
      {"half an answer", response(200, "ok"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"},
      {"an interim answer", response(200, "ok"), "HTTP/1.1 100 Continue\r\n\r\n"},
      {"a blank line", response(200, "ok"), "\r\n"},
  };
  for (const auto& c : cases) {
    ++id.value;
    std::atomic<int> connections = 0;
    FakeEngine worker([&c, &connections](FakePeer& peer) {
      const bool first_connection = connections.fetch_add(1) == 0;
      peer.read_request();
      peer.write(first_connection ? c.first : response(200, "ok"));
      if (!first_connection) return;
      peer.wait_for_proceed();
      peer.write(c.late);
      peer.wait_for_proceed();
    });
    EXPECT_TRUE(ask(worker)) << c.what;
    EXPECT_EQ(pool.idle_count(), 1U) << c.what;
    worker.proceed();
    run_until([&] { return worker.pauses() == 2; });  // it has sent it
    EXPECT_EQ(ask(worker).value_or("nothing"), "ok") << c.what;
    EXPECT_EQ(worker.connections(), 2U) << c.what;
    pool.forget(id);
  }
}

// A worker may have sent something just before the request was on its way. It is not told apart by
// looking first, but by the request being unacknowledged: here the worker's window is full.
TEST_F(ExchangeTest, NeverTakesForAnAnswerWhatCrossedTheRequest) {
  auto connections = std::make_shared<std::atomic<int>>(0);
  FakeEngine worker([connections](FakePeer& peer) {
    if (connections->fetch_add(1) > 0) {
      while (peer.read_request()) peer.write(response(200, "ok"));
      return;
    }
    peer.write(response(200, "ok"));  // without having read anything
    peer.wait_for_proceed();
    peer.write(response(200, "another's"));
    peer.wait_for_proceed();  // and reads nothing
  });
  const std::string more_than_its_window(512 * 1024, 'x');
  body = {more_than_its_window};
  warm_up(worker);
  ASSERT_EQ(pool.idle_count(), 1U);
  body = {"bo", "dy"};
  begin(worker.endpoint());
  io.restart();
  io.poll();  // the request is written
  worker.proceed();
  run_until([&] { return ended; });
  ASSERT_TRUE(*sent) << sent->error().message();
  EXPECT_EQ(answer->value(), "ok");
  EXPECT_TRUE(exchange->replayed());
  EXPECT_EQ(worker.connections(), 2U);
}

TEST_F(ExchangeTest, DoesNotAskAgainOnceAByteWasAnswered) {
  const FakeEngine worker(answers_once_then([](FakePeer& peer) { peer.write("HTTP/1.1 2"); }));
  warm_up(worker);
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineFailed);
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, DoesNotAskAgainOnAFreshConnection) {
  const FakeEngine worker([](FakePeer& peer) { peer.read_request(); });
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineFailed);
  EXPECT_THAT(result.error().message(), HasSubstr(worker.endpoint().to_string()));
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, DoesNotAskAgainWhereAKeptConnectionTakesTooLong) {
  const FakeEngine worker(answers_once_then([](FakePeer& peer) { peer.wait_for_drop(); }));
  warm_up(worker);
  timeouts.first_byte = 50ms;
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineTimeout);
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, SaysThatAWorkerCannotBeReached) {
  const auto result = ask_at(test::closed_endpoint());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineUnreachable);
}

TEST_F(ExchangeTest, GivesUpWhereNoAnswerBegins) {
  timeouts.first_byte = 50ms;
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineTimeout);
  EXPECT_TRUE(worker.wait_for_drops(1)) << "the worker is told to stop";
}

TEST_F(ExchangeTest, GivesUpWhereAnAnswerStops) {
  timeouts.idle = 50ms;
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    peer.wait_for_drop();
  });
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineTimeout);
  EXPECT_TRUE(worker.wait_for_drops(1));
}

TEST_F(ExchangeTest, GivesNoTimeForBytesThatAreNoAnswer) {
  timeouts.first_byte = 200ms;
  for (const auto& [begin, more] :
       {std::pair("", "HTTP/1.1 100 Continue\r\n\r\n"),
        std::pair("HTTP/1.1 200 OK\r\n", "X-A: b\r\n"), std::pair("HTTP/1.1 200 OK\r\nX-A: b", "b"),
        std::pair("", "\r\n")}) {
    ++id.value;
    const FakeEngine worker([&](FakePeer& peer) {
      peer.read_request();
      peer.write(begin);
      peer.drip(more);
    });
    const auto result = ask(worker);
    ASSERT_FALSE(result) << begin << more;
    EXPECT_EQ(result.error().code(), Errc::EngineTimeout) << begin << more;
    EXPECT_TRUE(worker.wait_for_drops(1)) << begin << more;
  }
}

TEST_F(ExchangeTest, GivesLittleTimeForAWholeAnswerThatComesByteByByte) {
  timeouts.idle = 200ms;
  for (const auto& [framing, more] :
       {std::pair("Content-Length: 9999\r\n\r\n", "x"),
        std::pair("Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        std::pair("Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1;", "x")}) {
    ++id.value;
    const FakeEngine worker([&](FakePeer& peer) {
      peer.read_request();
      peer.write(std::string("HTTP/1.1 200 OK\r\n") + framing);
      peer.drip(more);
    });
    const auto result = ask(worker);
    ASSERT_FALSE(result) << framing;
    EXPECT_EQ(result.error().code(), Errc::EngineTimeout) << framing;
    EXPECT_TRUE(worker.wait_for_drops(1)) << framing;
  }
}

TEST_F(ExchangeTest, WaitsForAStreamForAsLongAsItMakesProgress) {
  timeouts = {.first_byte = 300ms, .idle = 300ms};
  FakeEngine worker([&](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.drip("1\r\nx\r\n");
  });
  target = worker.endpoint();
  run([&]() -> awaitable<void> {
    Exchange stream(pool, {id, target}, timeouts);
    EXPECT_TRUE(co_await stream.send(kHead, body));
    const auto begun = deadlines.lived();
    while (deadlines.lived() - begun < 900ms) {
      EXPECT_TRUE(co_await stream.read());
      stream.progress();
    }
    auto piece = co_await stream.read();
    while (piece && !piece->empty()) piece = co_await stream.read();
    EXPECT_FALSE(piece);
    if (!piece) EXPECT_EQ(piece.error().code(), Errc::EngineTimeout);
  });
}

TEST_F(ExchangeTest, BlamesNoWorkerForTimeInWhichItIsNotRead) {
  timeouts.idle = 50ms;
  FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
    peer.wait_for_proceed();
    peer.write("b");
    peer.wait_for_drop();
  });
  target = worker.endpoint();
  exchange = std::make_unique<Exchange>(pool, Target{id, target}, timeouts);
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await exchange->send(kHead, body));
    EXPECT_EQ((co_await exchange->read()).value_or(""), "a");
    exchange->progress();
  });
  const auto read_at = deadlines.lived();
  run_until([&] { return deadlines.lived() - read_at > 6 * net::Deadlines::kTick; });
  worker.proceed();
  run([&]() -> awaitable<void> { EXPECT_EQ((co_await exchange->read()).value_or(""), "b"); });
}

TEST_F(ExchangeTest, NeverTakesACutBodyForAWholeOne) {
  for (const std::string framing :
       {"Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"}) {
    for (const bool reset : {false, true}) {
      ++id.value;
      const FakeEngine worker([&](FakePeer& peer) {
        peer.read_request();
        peer.write("HTTP/1.1 200 OK\r\n" + framing);
        if (reset) peer.wait_for_proceed();
        if (reset) peer.reset();
      });
      const model::Endpoint endpoint = worker.endpoint();
      run([&]() -> awaitable<void> {
        Exchange cut(pool, {id, endpoint}, timeouts);
        EXPECT_TRUE(co_await cut.send(kHead, body));
        const auto piece = co_await cut.read();
        EXPECT_TRUE(piece && *piece == "half") << framing;
        const_cast<FakeEngine&>(worker).proceed();
        const auto rest = co_await cut.read();
        EXPECT_FALSE(rest) << framing;
        if (!rest) EXPECT_EQ(rest.error().code(), Errc::StreamBroken) << framing;
        EXPECT_FALSE(cut.done());
      });
    }
  }
}

TEST_F(ExchangeTest, RefusesAnAnswerThatIsNoHttp) {
  const FakeEngine worker(test::always("SSH-2.0-OpenSSH\r\n\r\n"));
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineProtocol);
}

TEST_F(ExchangeTest, RefusesAnAnswerBeyondTheLimit) {
  const FakeEngine worker(test::always(response(200, "12345")));
  limit = 5;
  EXPECT_EQ(ask(worker).value(), "12345");
  limit = 4;
  const auto result = ask(worker);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Errc::EngineProtocol);
  EXPECT_EQ(result.error().limit(), Limit::ResponseBytes);
}

TEST_F(ExchangeTest, ReadsARefusalThatComesBeforeTheBodyWasTaken) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.write(response(413, "too large", "Connection: close\r\n"));
    peer.wait_for_drop();
  });
  const std::string large(16 * 1024 * 1024, 'x');
  body = {large};
  EXPECT_EQ(ask(worker).value(), "too large");
  EXPECT_EQ(status, 413);
}

// Regression: once writing had failed, what the worker had said was not read any more.
TEST_F(ExchangeTest, ReadsARefusalOfAWorkerThatClosedBeforeTheBodyWasTaken) {
  const FakeEngine worker([](FakePeer& peer) { peer.write(response(413, "too large")); });
  const std::string large(16 * 1024 * 1024, 'x');
  body = {large};
  EXPECT_EQ(ask(worker).value_or("nothing"), "too large");
  EXPECT_EQ(status, 413);
  body = {"bo", "dy"};
  EXPECT_EQ(ask(worker).value_or("nothing"), "too large");
  EXPECT_EQ(worker.connections(), 2U) << "half a request was sent: no place for another";
}

TEST_F(ExchangeTest, ReadsLargeAnswersWhole) {
  std::string large(3 * 1024 * 1024, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  limit = large.size();
  const FakeEngine worker(test::always(response(200, large)));
  EXPECT_TRUE(ask(worker).value() == large);
}

TEST_F(ExchangeTest, WaitsForTheFirstTokenAsLongAsForTheHead) {
  timeouts.idle = 1ms;
  FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    peer.wait_for_proceed();
    peer.write("ok");
  });
  begin(worker.endpoint());
  run_until([&] { return worker.pauses() == 1 && sent.has_value(); });
  const auto head_at = deadlines.now();
  // Longer than timeouts.idle and the clock's grain together.
  run_until([&] { return deadlines.now() - head_at > 4 * net::Deadlines::kTick; });
  worker.proceed();
  run_until([&] { return ended; });
  ASSERT_TRUE(*answer) << answer->error().message();
  EXPECT_EQ(**answer, "ok");
}

TEST_F(ExchangeTest, DoesNotWaitLongForTheEndOfAnAnswerThatIsComplete) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
    peer.wait_for_drop();
  });
  target = worker.endpoint();
  run([&]() -> awaitable<void> {
    Exchange once(pool, {id, target}, timeouts);
    EXPECT_TRUE(co_await once.send(kHead, body));
    const auto piece = co_await once.read();
    EXPECT_EQ(piece.value(), "ok");
    co_await once.await_end(10ms);
    EXPECT_FALSE(once.done());
  });
  EXPECT_TRUE(worker.wait_for_drops(1)) << "an answer without an end leaves no usable connection";
}

TEST_F(ExchangeTest, DroppedBeforeItBeganDoesNotSend) {
  const FakeEngine worker(test::always(response(200, "ok")));
  target = worker.endpoint();
  run([&]() -> awaitable<void> {
    Exchange once(pool, {id, target}, timeouts);
    once.drop();
    const auto taken = co_await once.send(kHead, body);
    EXPECT_FALSE(taken);
    if (!taken) EXPECT_THAT(taken.error().message(), HasSubstr("given up"));
  });
  EXPECT_TRUE(worker.requests().empty());
}

// Regression: drop() had no effect while the connection was being made.
TEST_F(ExchangeTest, DroppedWhileItConnectsDoesNotSend) {
  const FakeEngine worker(test::always(response(200, "ok")));
  begin(worker.endpoint());
  io.poll_one();  // as far as the connect
  exchange->drop();
  run_until([&] { return ended; });
  ASSERT_FALSE(*sent);
  EXPECT_THAT(sent->error().message(), HasSubstr("given up"));
  EXPECT_TRUE(worker.requests().empty());
}

TEST_F(ExchangeTest, DroppedBeforeTheHeadTellsTheWorkerAndSaysSo) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  begin(worker.endpoint());
  run_until([&] { return worker.requests().size() == 1; });
  exchange->drop();
  run_until([&] { return ended; });
  ASSERT_FALSE(*sent);
  EXPECT_EQ(sent->error().code(), Errc::EngineFailed);
  EXPECT_THAT(sent->error().message(), HasSubstr("given up"));
  exchange.reset();
  EXPECT_TRUE(worker.wait_for_drops(1));
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, DroppedBetweenHeadAndBodyHasNotBegun) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    peer.wait_for_drop();
  });
  begin(worker.endpoint());
  run_until([&] { return sent.has_value(); });
  ASSERT_TRUE(*sent);
  exchange->drop();
  run_until([&] { return ended; });
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().code(), Errc::EngineFailed);
  EXPECT_THAT(answer->error().message(), HasSubstr("given up"));
  exchange.reset();
  EXPECT_TRUE(worker.wait_for_drops(1));
}

TEST_F(ExchangeTest, DroppedInTheMiddleOfTheBodyIsABrokenStream) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  const model::Endpoint endpoint = worker.endpoint();
  run([&]() -> awaitable<void> {
    Exchange broken(pool, {id, endpoint}, timeouts);
    EXPECT_TRUE(co_await broken.send(kHead, body));
    const auto first = co_await broken.read();
    EXPECT_TRUE(first && *first == "first");
    broken.drop();
    const auto rest = co_await broken.read();
    EXPECT_FALSE(rest);
    if (rest) co_return;
    EXPECT_EQ(rest.error().code(), Errc::StreamBroken);
    EXPECT_THAT(rest.error().message(), HasSubstr("given up"));
  });
  EXPECT_TRUE(worker.wait_for_drops(1));
  EXPECT_EQ(pool.idle_count(), 0U);
}

TEST_F(ExchangeTest, DroppedBetweenTwoReadsFailsTheNext) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
    peer.wait_for_drop();
  });
  target = worker.endpoint();
  run([&]() -> awaitable<void> {
    Exchange stream(pool, {id, target}, timeouts);
    EXPECT_TRUE(co_await stream.send(kHead, body));
    EXPECT_TRUE(co_await stream.read());
    stream.drop();
    EXPECT_TRUE(worker.wait_for_drops(1)) << "told at once, though nobody reads here";
    const auto rest = co_await stream.read();
    EXPECT_FALSE(rest);
    if (!rest) EXPECT_THAT(rest.error().message(), HasSubstr("given up"));
  });
}

// Regression: a dropped leg looked like a kept-alive connection that had died, and its request was
// sent a second time.
TEST_F(ExchangeTest, DroppedOnAKeptConnectionIsNotSentAgain) {
  const FakeEngine worker(answers_once_then([](FakePeer& peer) { peer.wait_for_drop(); }));
  warm_up(worker);
  begin(worker.endpoint());
  run_until([&] { return worker.requests().size() == 2; });
  exchange->drop();
  run_until([&] { return ended; });
  ASSERT_FALSE(*sent);
  EXPECT_THAT(sent->error().message(), HasSubstr("given up"));
  EXPECT_EQ(worker.connections(), 1U);
}

TEST_F(ExchangeTest, DroppedTwiceIsDroppedOnce) {
  const FakeEngine worker([](FakePeer& peer) {
    peer.read_request();
    peer.wait_for_drop();
  });
  begin(worker.endpoint());
  run_until([&] { return worker.requests().size() == 1; });
  exchange->drop();
  exchange->drop();
  run_until([&] { return ended; });
  exchange->drop();
  EXPECT_FALSE(*sent);
}

TEST_F(ExchangeTest, TellsWhichStepFailed) {
  const FakeEngine mute([](FakePeer& peer) { peer.read_request(); });
  const FakeEngine cut_short([](FakePeer& peer) {
    peer.read_request();
    peer.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfirst");
  });
  for (const auto& [endpoint, phase, status] :
       {std::tuple(test::closed_endpoint(), Phase::Connect, net::IoStatus::Failed),
        std::tuple(mute.endpoint(), Phase::Head, net::IoStatus::Closed),
        std::tuple(cut_short.endpoint(), Phase::Body, net::IoStatus::Closed)}) {
    run([&]() -> awaitable<void> {
      Exchange one(pool, {{7}, endpoint}, timeouts);
      if (co_await one.send(kHead, body)) EXPECT_FALSE(co_await one.read_all(1000));
      EXPECT_EQ(one.failure().phase, phase);
      EXPECT_EQ(one.failure().status, status);
    });
  }
}

TEST_F(ExchangeTest, KeepsAConnectionWithTls) {
  const test::TemporaryDirectory directory;
  test::TlsServer server(io);
  const auto tls = make_tls_client({.ca_file = directory.write("ca.pem", server.own.certificate)});
  ASSERT_TRUE(tls) << tls.error().message();
  start([&server] { return server.serve(); });
  const model::Endpoint endpoint = server.endpoint();
  for (const std::size_t count : {1U, 2U}) {
    run([&]() -> awaitable<void> {
      Exchange one(pool, {{7}, endpoint, tls->get()}, timeouts);
      const auto sent = co_await one.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n", {});
      EXPECT_TRUE(sent) << sent.error().message();
      if (sent) EXPECT_EQ(co_await one.read_all(1000), "body");
      EXPECT_FALSE(one.replayed());
    });
    EXPECT_EQ(server.requests.size(), count);
  }
}

}  // namespace
}  // namespace baton::http_client
