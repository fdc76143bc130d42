// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Health checks as each engine has them.
#include "tools/sim/health_request.h"

#include "unit/tools/sim/loopback.h"

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <string>

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

class HealthRequestTest : public Loopback {
 protected:
  boost::asio::awaitable<int> get(const Server& server, std::string path = "/health") {
    co_return (co_await call(server.port(), "GET", path)).status;
  }
  Task fault(const Server& server, json fault) {
    const Reply reply = co_await call(server.control_port(), "POST", "/sim/faults", fault);
    EXPECT_EQ(reply.status, 200) << reply.body;
  }
  Server& start_with_control(Engine engine) {
    Options options = worker(engine);
    options.has_control = true;
    return start(options);
  }
};

TEST_F(HealthRequestTest, IsWellInEveryRoleAndLeavesNothingBehind) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    for (const Role role : {Role::Prefill, Role::Decode, Role::Aggregated})
      start(worker(engine, role));
  }
  run([&]() -> Task {
    for (const auto& server : servers_) {
      EXPECT_EQ(co_await get(*server), 200);
      EXPECT_EQ(co_await get(*server, "/ping"), 200);
      EXPECT_EQ(co_await get(*server, "/health_generate"),
                server->options().engine == Engine::Vllm ? 404 : 200);
      EXPECT_EQ((co_await call(server->port(), "POST", "/health")).status, 405);
      const json now = co_await state(*server);
      EXPECT_EQ(now["running"], 0);
      EXPECT_EQ(now["requests"], 0);
      EXPECT_EQ(now["blocks_free"], server->options().blocks);
    }
  });
}

// SGLang's engine looks once a second whether its token came.
TEST_F(HealthRequestTest, TakesAtLeastOnePoll) {
  Options options = worker(Engine::Sglang);
  options.health_poll_ms = 1000;
  Server& server = start(options);
  run([&]() -> Task {
    const auto before = Clock::now();
    EXPECT_EQ(co_await get(server), 200);
    EXPECT_GE(Clock::now() - before, std::chrono::milliseconds(1000));
    const auto between = Clock::now();
    EXPECT_EQ(co_await get(server, "/ping"), 200);
    EXPECT_LT(Clock::now() - between, std::chrono::milliseconds(1000));
  });
}

TEST_F(HealthRequestTest, CountsTheTokensOfOthersToo) {
  Options options = worker(Engine::Sglang);
  options.max_seqs = 1;
  Server& server = start(options);
  run([&]() -> Task {
    auto busy =
        co_await open_chat(server, {{"stream", true}, {"ignore_eos", true}, {"max_tokens", 30000}});
    co_await until(server, [](const json& now) { return now["running"] == 1; });
    EXPECT_EQ(co_await get(server), 200);
    EXPECT_EQ((co_await state(server))["waiting"], 0);
  });
}

TEST_F(HealthRequestTest, OfAnEngineThatIsStuckIsNotAnswered) {
  Options options = worker(Engine::Sglang);
  options.has_control = true;
  options.max_seqs = 1;
  Server& server = start(options);
  run([&]() -> Task {
    co_await fault(server, {{"kind", "hang_stream"}});
    auto stuck = co_await open_chat(server, {{"stream", true}});
    co_await until(server, [](const json& now) { return now["running"] == 1; });
    {
      boost::asio::ip::tcp::socket asking(io_);
      co_await asking.async_connect({boost::asio::ip::address_v4::loopback(), server.port()},
                                    boost::asio::use_awaitable);
      const std::string request = "GET /health HTTP/1.1\r\nHost: h\r\n\r\n";
      co_await boost::asio::async_write(asking, boost::asio::buffer(request),
                                        boost::asio::use_awaitable);
      co_await until(server, [](const json& now) { return now["waiting"] == 1; });
    }
    // Who asked has gone, and so has the request.
    co_await until(server, [](const json& now) { return now["waiting"] == 0; });
  });
}

TEST_F(HealthRequestTest, FaultsOfHealthStrikeNothingElse) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm})
    start_with_control(engine);
  run([&]() -> Task {
    for (const auto& server : servers_) {
      co_await fault(*server, {{"kind", "status"}, {"phase", "health"}, {"count", 2}});
      EXPECT_EQ(text_of(co_await chat(*server, {})), expected_text());
      EXPECT_EQ(co_await get(*server), 503);
      EXPECT_EQ(co_await get(*server), 503);
      EXPECT_EQ(co_await get(*server), 200);

      co_await fault(*server, {{"kind", "reset"}, {"phase", "health"}, {"count", 1}});
      EXPECT_EQ(co_await get(*server), 0);

      co_await fault(*server,
                     {{"kind", "slow"}, {"phase", "health"}, {"delay_ms", 60}, {"count", 1}});
      const auto before = Clock::now();
      EXPECT_EQ(co_await get(*server), 200);
      EXPECT_GE(Clock::now() - before, std::chrono::milliseconds(60));

      // And those of requests do not strike health.
      co_await fault(*server, {{"kind", "status"}});
      EXPECT_EQ(co_await get(*server), 200);
    }
  });
}

TEST_F(HealthRequestTest, HangsUntilTheOtherSideLeaves) {
  Server& server = start_with_control(Engine::Vllm);
  run([&]() -> Task {
    co_await fault(server, {{"kind", "hang"}, {"phase", "health"}});
    boost::asio::ip::tcp::socket asking(io_);
    co_await asking.async_connect({boost::asio::ip::address_v4::loopback(), server.port()},
                                  boost::asio::use_awaitable);
    const std::string request = "GET /health HTTP/1.1\r\nHost: h\r\n\r\n";
    co_await boost::asio::async_write(asking, boost::asio::buffer(request),
                                      boost::asio::use_awaitable);
    EXPECT_EQ(text_of(co_await chat(server, {})), expected_text());
    EXPECT_EQ(asking.available(), 0U);
    const json before = co_await state(server);
    asking.close();
    co_await until(
        server, [&before](const json& now) { return now["connections"] < before["connections"]; });
  });
}

}  // namespace
}  // namespace baton::sim
