// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// One simulated server as a client sees it: answers, aborts, faults.
#include "tools/sim/command.h"
#include "unit/tools/sim/loopback.h"

#include <boost/asio/read.hpp>

#include <chrono>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

class ServerTest : public Loopback {
 protected:
  Server& start_with_control(Options options) {
    options.has_control = true;
    return start(options);
  }
  Task fault(const Server& server, json fault) {
    const Reply reply = co_await call(server.control_port(), "POST", "/sim/faults", fault);
    EXPECT_EQ(reply.status, 200) << reply.body;
  }
};

TEST_F(ServerTest, ClosesAConnectionThatIsSilentForTooLongBetweenTwoRequests) {
  Options options = worker(Engine::Vllm);
  options.keep_alive_ms = 20;
  const Server& server = start(options);
  run([&]() -> Task {
    auto socket = co_await open_chat(server, {{"max_tokens", 2}});
    std::string answer;
    // It ends by itself, though the client asked for no end.
    const auto [error, size] =
        co_await boost::asio::async_read(socket, boost::asio::dynamic_buffer(answer), net::kAwait);
    EXPECT_EQ(error, boost::asio::error::eof);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK"));
    EXPECT_EQ(answer.find("connection: close"), std::string::npos);
  });
}

TEST_F(ServerTest, AnswersTheKnownTextStreamedOrNot) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    start(worker(engine));
  }
  run([&]() -> Task {
    for (const auto& server : servers_) {
      EXPECT_EQ(text_of(co_await chat(*server, {{"stream", false}})), expected_text());
      EXPECT_EQ(text_of(co_await chat(*server, {{"stream", true}})), expected_text());
      EXPECT_EQ((co_await state(*server))["blocks_free"], server->options().blocks);
    }
  });
}

// The ids a whole completion says it had and gave.
struct Ids {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;
  std::string text;
};

Ids ids_of(const Reply& reply) {
  const json choice = reply.json()["choices"][0];
  return {choice["prompt_token_ids"], choice["token_ids"], choice["text"]};
}

TEST_F(ServerTest, AnAnswerGoesOnExactlyFromAnyOfItsTokens) {
  start(worker(Engine::Vllm));
  start(worker(Engine::Sglang));
  run([&]() -> Task {
    for (const auto& server : servers_) {
      const auto ask = [&](json prompt, int most) {
        return call(server->port(), "POST", "/v1/completions",
                    {{"prompt", prompt}, {"max_tokens", most}, {"return_token_ids", true}});
      };
      const Ids whole = ids_of(co_await ask("tell me a story", 1000));
      const std::size_t length = whole.answer.size();
      for (const std::size_t k : {std::size_t{1}, length / 2, length - 1, length}) {
        Ids half = ids_of(co_await ask("tell me a story", static_cast<int>(k)));
        EXPECT_EQ(half.answer.size(), k);
        half.prompt.insert(half.prompt.end(), half.answer.begin(), half.answer.end());
        const Reply reply = co_await ask(half.prompt, 1000);
        const Ids rest = ids_of(reply);
        EXPECT_EQ(half.text + rest.text, whole.text);
        half.answer.insert(half.answer.end(), rest.answer.begin(), rest.answer.end());
        EXPECT_EQ(half.answer, whole.answer);
        EXPECT_EQ(reply.json()["choices"][0]["finish_reason"], "stop");
        EXPECT_EQ(reply.json()["usage"]["completion_tokens"], length - k);
      }
    }
  });
}

TEST_F(ServerTest, ChatsGoOnFromTokenIdsInEachEnginesOwnField) {
  start(worker(Engine::Vllm));
  start(worker(Engine::Sglang));
  start(worker(Engine::Trtllm));
  run([&]() -> Task {
    const json known =
        (co_await chat(*servers_[0], {{"max_tokens", 5}, {"return_token_ids", true}})).json();
    json ids = known["prompt_token_ids"];
    for (const json& id : known["choices"][0]["token_ids"]) ids.push_back(id);
    const std::vector<json> fields{{{"kv_transfer_params", {{"prompt_token_ids", ids}}}},
                                   {{"input_ids", ids}},
                                   {{"prompt_token_ids", ids}}};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      for (const bool stream : {false, true}) {
        json body = fields[i];
        body["stream"] = stream;
        EXPECT_EQ(expected_text(5) + text_of(co_await chat(*servers_[i], body)), expected_text());
      }
    }
  });
}

TEST_F(ServerTest, ChoicesOfASeededRequestAreThoseOfRequestsWithTheSeedsThatFollow) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    const json all = (co_await chat(server, {{"n", 3}, {"seed", 11}})).json()["choices"];
    for (std::size_t k = 0; k < 3; ++k) {
      const Reply one = co_await chat(server, {{"seed", 11 + k}});
      EXPECT_EQ(text_of(one), all[k]["message"]["content"].get<std::string>());
      EXPECT_NE(text_of(one), expected_text());
    }
  });
}

TEST_F(ServerTest, AClientThatLeavesFreesItsSequenceAndBlocks) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    for (const bool stream : {true, false}) {
      const json before = co_await state(server);
      {
        auto socket = co_await open_chat(
            server, {{"stream", stream}, {"ignore_eos", true}, {"max_tokens", 30000}});
        co_await until(server, [](const json& now) { return now["running"] == 1; });
      }
      co_await until(server, [&before](const json& now) {
        return now["running"] == 0 && now["aborted"] == before["aborted"].get<int>() + 1;
      });
      EXPECT_EQ((co_await state(server))["blocks_free"], server.options().blocks);
      // Only the one that asks.
      co_await until(server, [](const json& now) { return now["connections"] == 1; });
    }
  });
}

TEST_F(ServerTest, RequestsBeyondTheBlocksWaitTheirTurn) {
  Options options = worker(Engine::Vllm);
  options.max_seqs = 1;
  Server& server = start(options);
  run([&]() -> Task {
    const json endless{{"stream", true}, {"ignore_eos", true}, {"max_tokens", 30000}};
    auto running = co_await open_chat(server, endless);
    auto waiting = co_await open_chat(server, endless);
    co_await until(server,
                   [](const json& now) { return now["running"] == 1 && now["waiting"] == 1; });
  });
}

TEST_F(ServerTest, WhatNeverFitsIsRefused) {
  Options options = worker(Engine::Vllm);
  options.blocks = 8;
  Server& server = start(options);
  run([&]() -> Task {
    const Reply reply = co_await chat(server, {{"ignore_eos", true}, {"max_tokens", 100}});
    EXPECT_EQ(reply.status, 400);
  });
}

TEST_F(ServerTest, AKeyIsRequiredOnV1PathsOnly) {
  Options options = worker(Engine::Vllm);
  options.api_key = "secret";
  Server& server = start(options);
  run([&]() -> Task {
    EXPECT_EQ((co_await chat(server, {})).status, 401);
    EXPECT_EQ((co_await call(server.port(), "GET", "/v1/models")).status, 401);
    EXPECT_EQ((co_await call(server.port(), "GET", "/health")).status, 200);
  });
}

TEST_F(ServerTest, SglangGuardsAllButWhatWatchersNeed) {
  Options options = worker(Engine::Sglang);
  options.api_key = "secret";
  Server& server = start(options);
  run([&]() -> Task {
    for (const char* path : {"/v1/models", "/server_info", "/get_server_info", "/ping"}) {
      EXPECT_EQ((co_await call(server.port(), "GET", path)).status, 401) << path;
      const HeaderList key{{"Authorization", "Bearer secret"}};
      EXPECT_EQ((co_await call(server.port(), "GET", path, nullptr, key)).status, 200) << path;
    }
    for (const char* path : {"/health", "/health_generate", "/metrics", "/sim/state"})
      EXPECT_EQ((co_await call(server.port(), "GET", path)).status, 200) << path;
  });
}

TEST_F(ServerTest, AdaptersHaveCardsAndServeUnderTheirNames) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang}) {
    Options options = worker(engine);
    options.loras = {"poet", "clerk"};
    start(options);
  }
  run([&]() -> Task {
    for (const auto& server : servers_) {
      const json cards = (co_await call(server->port(), "GET", "/v1/models")).json()["data"];
      EXPECT_EQ(cards.size(), 3U);
      EXPECT_EQ(cards[0]["parent"], nullptr);
      EXPECT_EQ(cards[0]["max_model_len"], server->options().max_model_len);
      EXPECT_EQ(cards[2]["id"], "clerk");
      EXPECT_EQ(cards[2]["parent"], "demo");
      EXPECT_EQ(cards[2]["max_model_len"], nullptr);

      const bool vllm = server->options().engine == Engine::Vllm;
      const std::string name = vllm ? "poet" : "demo:poet";
      EXPECT_EQ((co_await chat(*server, {{"model", name}})).json()["model"], name);
      // SGLang serves its model under any name that has no adapter's behind it.
      EXPECT_EQ((co_await chat(*server, {{"model", vllm ? "demo:poet" : "demo:nobody"}})).status,
                vllm ? 404 : 400);
    }
  });
}

TEST_F(ServerTest, TensorRtHasNoAdaptersByName) {
  Options options = worker(Engine::Trtllm);
  options.loras = {"poet"};
  EXPECT_FALSE(Server(io_, options).start());
}

TEST_F(ServerTest, IntrospectionIsEachEnginesOwn) {
  for (const Engine engine : {Engine::Vllm, Engine::Sglang, Engine::Trtllm}) {
    start(worker(engine));
  }
  run([&]() -> Task {
    for (const auto& server : servers_) {
      const bool vllm = server->options().engine == Engine::Vllm;
      const bool sglang = server->options().engine == Engine::Sglang;
      const auto get = [&](std::string path) { return call(server->port(), "GET", path); };
      EXPECT_EQ((co_await get("/v1/models")).json()["data"][0]["id"], "demo");
      EXPECT_EQ((co_await get("/server_info")).status, vllm ? 404 : 200);
      EXPECT_EQ((co_await get("/get_server_info")).status, sglang ? 200 : 404);
      EXPECT_EQ((co_await get("/version")).status, sglang ? 404 : 200);
      EXPECT_NE((co_await get("/metrics")).body.find("sim_pinned"), std::string::npos);
      EXPECT_EQ((co_await get("/v1/chat/completions")).status, 405);
      EXPECT_EQ((co_await get("/nothing")).status, 404);
    }
  });
}

TEST_F(ServerTest, TellsWhatItHasRoomFor) {
  Options options = worker(Engine::Sglang);
  options.blocks = 100;
  options.block_size = 16;
  options.max_batched_tokens = 2048;
  const Server& sglang = start(options);
  options.max_batched_tokens = 0;
  const Server& unlimited = start(options);
  options.engine = Engine::Vllm;
  const Server& vllm = start(options);
  run([&]() -> Task {
    const json info = (co_await call(sglang.port(), "GET", "/get_server_info")).json();
    EXPECT_EQ(info["max_total_num_tokens"], 1600);
    EXPECT_EQ(info["chunked_prefill_size"], 2048);
    EXPECT_EQ(info["max_prefill_tokens"], 16384);
    EXPECT_EQ(
        (co_await call(unlimited.port(), "GET", "/server_info")).json()["chunked_prefill_size"],
        -1);
    const std::string metrics = (co_await call(vllm.port(), "GET", "/metrics")).body;
    EXPECT_NE(metrics.find(R"(num_gpu_blocks="100")"), std::string::npos) << metrics;
    for (const char* gauge :
         {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"}) {
      EXPECT_NE(metrics.find(std::string("\nvllm:") + gauge + "{"), std::string::npos) << gauge;
    }
  });
}

TEST_F(ServerTest, TokenizeAgreesWithUsage) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    const json body{{"messages", {{{"role", "user"}, {"content", "one two three four five six"}}}}};
    const Reply tokens = co_await call(server.port(), "POST", "/tokenize", body);
    const Reply answer = co_await chat(server, {{"max_tokens", 2}});
    EXPECT_EQ(tokens.json()["count"], answer.json()["usage"]["prompt_tokens"]);
    const json ids{{"tokens", tokens.json()["tokens"]}};
    EXPECT_EQ((co_await call(server.port(), "POST", "/detokenize", ids)).status, 404);
    EXPECT_EQ(answer.json()["usage"]["completion_tokens"], 2);
  });
}

TEST_F(ServerTest, RequestsAreShownAsTheyArrived) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    for (int i = 0; i < 70; ++i) {
      co_await call(server.port(), "POST", "/v1/chat/completions", json{{"i", i}});
    }
    const json legs = (co_await call(server.port(), "GET", "/sim/requests")).json();
    EXPECT_EQ(legs.size(), 64U);
    EXPECT_EQ(legs.back()["body"], R"({"i":69})");
    EXPECT_EQ(legs.back()["phase"], "aggregated");
    EXPECT_EQ(legs.back()["headers"]["host"], "localhost");
  });
}

TEST_F(ServerTest, FaultsBeforeTheAnswer) {
  Server& server = start_with_control(worker(Engine::Vllm));
  run([&]() -> Task {
    co_await fault(server, {{"kind", "status"}, {"status", 429}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {})).status, 429);
    co_await fault(server, {{"kind", "reset"}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {})).status, 0);
    co_await fault(server, {{"kind", "status"}, {"phase", "prefill"}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {})).status, 200);
    co_await call(server.control_port(), "DELETE", "/sim/faults");

    co_await fault(server, {{"kind", "hang"}, {"count", 1}});
    const json before = co_await state(server);
    {
      auto socket = co_await open_chat(server, {});
      co_await until(server, [&](const json& now) {
        return now["requests"] == before["requests"].get<int>() + 1;
      });
    }
    co_await until(server, [&](const json& now) {
      return now["aborted"] == before["aborted"].get<int>() + 1;
    });
  });
}

TEST_F(ServerTest, FaultsInsideAStreamComeAfterTheGivenTokens) {
  Server& server = start_with_control(worker(Engine::Vllm));
  run([&]() -> Task {
    co_await fault(server, {{"kind", "cut"}, {"after_tokens", 3}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {{"stream", true}})).status, 0);

    co_await fault(server, {{"kind", "error_event"}, {"after_tokens", 3}, {"count", 1}});
    const Reply failed = co_await chat(server, {{"stream", true}});
    EXPECT_EQ(text_of(failed), expected_text(3));
    EXPECT_NE(failed.body.find("data: {\"error\":"), std::string::npos);
    EXPECT_TRUE(failed.body.ends_with("data: [DONE]\n\n"));

    co_await fault(server, {{"kind", "malformed"}, {"after_tokens", 3}, {"count", 1}});
    const Reply broken = co_await chat(server, {{"stream", true}});
    EXPECT_NE(broken.body.find("data: {\"id\":\"broken\",\"choices\":[{\n\n"), std::string::npos);

    co_await fault(server, {{"kind", "hang_stream"}, {"after_tokens", 2}, {"count", 1}});
    {
      auto socket = co_await open_chat(server, {{"stream", true}});
      co_await until(server, [](const json& now) { return now["running"] == 1; });
    }
    co_await until(server, [](const json& now) { return now["running"] == 0; });
    EXPECT_EQ((co_await state(server))["blocks_free"], server.options().blocks);
  });
}

TEST_F(ServerTest, FaultsOfWholeAnswers) {
  Server& server = start_with_control(worker(Engine::Vllm));
  run([&]() -> Task {
    co_await fault(server, {{"kind", "cut"}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {})).status, 0);
    co_await fault(server, {{"kind", "malformed"}, {"count", 1}});
    EXPECT_TRUE((co_await chat(server, {})).json().is_discarded());
    co_await fault(server, {{"kind", "error_event"}, {"count", 1}});
    EXPECT_EQ((co_await chat(server, {})).status, 500);
    co_await fault(server, {{"kind", "slow"}, {"delay_ms", 1}, {"count", 2}});
    EXPECT_EQ(text_of(co_await chat(server, {})), expected_text());
    EXPECT_EQ(text_of(co_await chat(server, {{"stream", true}})), expected_text());
  });
}

TEST_F(ServerTest, StepsOfASlowedEngineLastLongerAndItsAnswersAreTheSame) {
  Options options = worker(Engine::Vllm);
  options.decode_ms = 1;
  Server& server = start_with_control(options);
  run([&]() -> Task {
    constexpr auto kTokens = 4;
    constexpr auto kFactor = 25;
    co_await fault(server, {{"kind", "slow_steps"}, {"factor", kFactor}});
    const auto begun = std::chrono::steady_clock::now();
    const Reply reply = co_await chat(server, {{"max_tokens", kTokens}, {"ignore_eos", true}});
    EXPECT_GE(std::chrono::steady_clock::now() - begun,
              kTokens * kFactor * std::chrono::milliseconds(1));
    EXPECT_EQ(text_of(reply), expected_text(kTokens));
  });
}

TEST_F(ServerTest, RefusesConnectionsUntilClearedThroughTheControlDoor) {
  Server& server = start_with_control(worker(Engine::Vllm));
  run([&]() -> Task {
    co_await fault(server, {{"kind", "refuse"}});
    EXPECT_EQ((co_await chat(server, {})).status, 0);
    EXPECT_EQ((co_await state(server))["connections"], 0);
    // Once that is answered the doors are open.
    co_await call(server.control_port(), "DELETE", "/sim/faults");
    EXPECT_EQ(text_of(co_await chat(server, {})), expected_text());
  });
}

TEST_F(ServerTest, VllmHoldsTokensTogetherWhereAnIntervalIsAskedFor) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    const Reply reply = co_await chat(
        server, {{"stream", true}, {"stream_interval", 4}, {"max_tokens", 10}, {"logprobs", true}});
    EXPECT_EQ(text_of(reply), expected_text(10));
    // One, four, four, and the last at once.
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; (at = reply.body.find("data: {", at)) != std::string::npos;) {
      const std::size_t end = reply.body.find("\n\n", at);
      const json event = json::parse(reply.body.substr(at + 6, end - at - 6));
      const json& logprobs = event["choices"][0]["logprobs"];
      if (logprobs.is_object()) sizes.push_back(logprobs["content"].size());
      at = end;
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 4, 4, 1}));
  });
}

TEST_F(ServerTest, VllmCountsTimesAndEnds) {
  Server& server = start(worker(Engine::Vllm));
  run([&]() -> Task {
    EXPECT_EQ((co_await chat(server, {{"max_tokens", 5}})).status, 200);
    const std::string metrics = (co_await call(server.port(), "GET", "/metrics")).body;
    const std::string labels = R"({engine="0",model_name="demo")";
    for (const std::string& line :
         {"vllm:time_to_first_token_seconds_count" + labels + "} 1.0\n",
          "vllm:inter_token_latency_seconds_count" + labels + "} 4.0\n",
          "vllm:request_generation_tokens_bucket" + labels + R"(,le="5.0"} 1.0)" + "\n",
          "vllm:request_success_total" + labels + R"(,finished_reason="length"} 1.0)" + "\n"}) {
      EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
    }
    EXPECT_EQ(metrics.find("nixl"), std::string::npos);
    EXPECT_EQ((co_await call(server.port(), "GET", "/load")).json(), (json{{"server_load", 0}}));
  });
}

TEST_F(ServerTest, RefusesABodyThatIsNotSaidToBeJson) {
  const std::string why = "Unsupported Media Type: Only 'application/json' is allowed";
  Server& vllm = start(worker(Engine::Vllm));
  Server& sglang = start(worker(Engine::Sglang));
  run([&]() -> Task {
    for (const std::string type : {"", "text/plain", "application/x-www-form-urlencoded"}) {
      const HeaderList headers{{"Content-Type", type}};
      const Reply refused = co_await chat(vllm, {}, headers);
      EXPECT_EQ(refused.status, 400) << type;
      EXPECT_EQ(refused.json()["error"], (json{{"message", "1 validation error:\n  " + why},
                                               {"type", "Bad Request"},
                                               {"param", nullptr},
                                               {"code", 400}}));
      const json prompt{{"prompt", "hi"}};
      EXPECT_EQ((co_await call(vllm.port(), "POST", "/tokenize", prompt, headers)).status, 400);
      const Reply also = co_await chat(sglang, {}, headers);
      EXPECT_EQ(also.status, 400) << type;
      EXPECT_NE(also.json()["message"].get<std::string>().find(why), std::string::npos);
    }
    const HeaderList full{{"Content-Type", "Application/JSON; charset=utf-8"}};
    for (const Server* server : {&vllm, &sglang})
      EXPECT_EQ((co_await chat(*server, {}, full)).status, 200);
  });
}

TEST_F(ServerTest, APortInUseEndsTheCommandWithAHint) {
  Server& server = start(worker(Engine::Vllm));
  Options options = worker(Engine::Vllm);
  options.port = server.port();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_command(options), 2);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("another process has it: choose another port"), std::string::npos) << said;
  run([]() -> Task { co_return; });
}

}  // namespace
}  // namespace baton::sim
