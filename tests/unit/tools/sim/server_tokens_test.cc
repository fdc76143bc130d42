// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Requests that come with token ids, and questions for them, over sockets.
#include "unit/tools/sim/byte_tokens.h"
#include "unit/tools/sim/loopback.h"

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

constexpr const char* kChatText = "one two three four five six";  // what Loopback::chat says

class ServerTokens : public Loopback {
 protected:
  Server& start_bytes(Engine engine, std::string version = "") {
    Options options = worker(engine);
    options.version = std::move(version);
    return start(std::move(options), std::make_unique<const ByteTokens>());
  }
};

TEST_F(ServerTokens, RequestsWithIdsAreCountedAndHeldAgainstTheirText) {
  Server& server = start_bytes(Engine::Sglang);
  run([&]() -> Task {
    const std::vector<TokenId> right = ByteTokens::of(kChatText);
    EXPECT_EQ((co_await chat(server, {{"max_tokens", 2}})).status, 200);
    json told = co_await state(server);
    EXPECT_EQ(told["with_token_ids"], 0);
    const Reply good = co_await chat(server, {{"max_tokens", 2}, {"input_ids", right}});
    EXPECT_EQ(good.json()["usage"]["prompt_tokens"], right.size());
    told = co_await state(server);
    EXPECT_EQ(told["with_token_ids"], 1);
    EXPECT_EQ(told["token_mismatches"], 0);
    const Reply wrong = co_await chat(server, {{"max_tokens", 2}, {"input_ids", {1, 2, 3}}});
    EXPECT_EQ(wrong.json()["usage"]["prompt_tokens"], 3) << "it is served all the same";
    told = co_await state(server);
    EXPECT_EQ(told["with_token_ids"], 2);
    EXPECT_EQ(told["token_mismatches"], 1);
    const Reply metrics = co_await call(server.port(), "GET", "/metrics");
    EXPECT_NE(metrics.body.find("# TYPE sim_token_mismatches counter\nsim_token_mismatches 1\n"),
              std::string::npos);
  });
}

TEST_F(ServerTokens, TheReleaseIsToldAndDecidesWhatIsThere) {
  start_bytes(Engine::Vllm, "0.15.1");
  start_bytes(Engine::Vllm, "0.29.0");
  run([&]() -> Task {
    const json body{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
    const auto render = [&](std::size_t i) {
      return call(servers_[i]->port(), "POST", "/v1/chat/completions/render", body);
    };
    EXPECT_EQ((co_await call(servers_[0]->port(), "GET", "/version")).json()["version"], "0.15.1");
    EXPECT_EQ((co_await render(0)).status, 404);
    const Reply rendered = co_await render(1);
    EXPECT_EQ(rendered.status, 200);
    EXPECT_EQ(rendered.json()["token_ids"], json({'h', 'i'}));
    EXPECT_EQ((co_await call(servers_[1]->port(), "GET", "/v1/completions/render")).status, 404);
    EXPECT_EQ((co_await state(*servers_[1]))["requests"], 0) << "a question is no request";
  });
}

TEST_F(ServerTokens, AVersionThatIsNoneIsRefusedAtTheStart) {
  Options options = worker(Engine::Vllm);
  options.version = "newest";
  Server server(io_, options);
  const auto started = server.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("--release newest"), std::string::npos);
}

}  // namespace
}  // namespace baton::sim
