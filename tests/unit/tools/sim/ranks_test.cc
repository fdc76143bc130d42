// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Data-parallel ranks of one simulated server, as clients and peers see them.
#include "unit/tools/sim/loopback.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace baton::sim {
namespace {

using boost::asio::experimental::awaitable_operators::operator&&;
using model::Engine;
using model::Role;
using nlohmann::json;

const json kEndless{{"stream", true}, {"ignore_eos", true}, {"max_tokens", 30000}};

class RanksTest : public Loopback {
 protected:
  static Options ranks(std::uint32_t count, Engine engine, Role role = Role::Aggregated) {
    Options options = worker(engine, role);
    options.dp_size = count;
    return options;
  }
  boost::asio::awaitable<Reply> chat_on(const Server& server, std::string rank,
                                        json fields = json::object()) {
    return chat(server, std::move(fields), {{"X-data-parallel-rank", std::move(rank)}});
  }
  // The ranks of the request legs so far, oldest first.
  boost::asio::awaitable<json> ranks_of(const Server& server) {
    json out = json::array();
    const Reply reply = co_await call(server.port(), "GET", "/sim/requests");
    for (const json& leg : reply.json()) out.push_back(leg["rank"]);
    co_return out;
  }
};

TEST_F(RanksTest, EachRankHasAPrefixCacheOfItsOwn) {
  Server& server = start(ranks(2, Engine::Vllm));
  run([&]() -> Task {
    const auto cached = [](const Reply& reply) {
      return reply.json()["usage"]["prompt_tokens_details"].value("cached_tokens", 0);
    };
    EXPECT_EQ(cached(co_await chat_on(server, "1")), 0);
    EXPECT_EQ(cached(co_await chat_on(server, "0")), 0);
    EXPECT_GT(cached(co_await chat_on(server, "1")), 0);
    EXPECT_EQ(co_await ranks_of(server), json({1, 0, 1}));
  });
}

TEST_F(RanksTest, PlacesAndBlocksArePerRankAndTheStateIsTheirSum) {
  Options options = ranks(2, Engine::Vllm);
  options.max_seqs = 1;
  Server& server = start(options);
  run([&]() -> Task {
    auto first = co_await open_chat(server, kEndless);
    co_await until(server, [](const json& now) { return now["running"] == 1; });
    auto second = co_await open_chat(server, kEndless);
    co_await until(server, [](const json& now) { return now["running"] == 2; });
    auto third = co_await open_chat(server, kEndless);
    co_await until(server, [](const json& now) { return now["waiting"] == 1; });
    const json now = co_await state(server);
    EXPECT_EQ(now["ranks"], 2);
    EXPECT_EQ(now["running"], 2);
    EXPECT_EQ(now["blocks_total"], 2 * options.blocks);
    // The least loaded rank, the lowest of equals.
    EXPECT_EQ(co_await ranks_of(server), json({0, 1, 0}));
    const std::string metrics = (co_await call(server.port(), "GET", "/metrics")).body;
    for (const char* series :
         {"vllm:num_requests_running{engine=\"0\",model_name=\"demo\"} 1.0\n",
          "vllm:num_requests_running{engine=\"1\",model_name=\"demo\"} 1.0\n",
          "vllm:num_requests_waiting{engine=\"0\",model_name=\"demo\"} 1.0\n",
          "vllm:num_requests_waiting{engine=\"1\",model_name=\"demo\"} 0.0\n"}) {
      EXPECT_NE(metrics.find(series), std::string::npos) << series << metrics;
    }
  });
}

TEST_F(RanksTest, AnEngineReadsTheHeaderItsOwnWay) {
  Server& vllm = start(ranks(2, Engine::Vllm));
  Server& sglang = start(ranks(2, Engine::Sglang));
  run([&]() -> Task {
    EXPECT_EQ((co_await chat_on(vllm, "two")).status, 200);
    EXPECT_EQ((co_await chat_on(sglang, "two")).status, 400);
    const Reply beyond = co_await chat_on(vllm, "2");
    EXPECT_EQ(beyond.status, 400);
    EXPECT_EQ(beyond.json()["error"]["code"], 400);
    EXPECT_EQ((co_await chat_on(sglang, "2")).json()["object"], "error");
    EXPECT_EQ((co_await chat_on(sglang, "1")).status, 200);
    const json by_body{{"routed_dp_rank", 1}};
    EXPECT_EQ((co_await chat(sglang, by_body)).status, 200);
    // No rank was given to what was refused.
    EXPECT_EQ(co_await ranks_of(sglang), json({nullptr, nullptr, 1, 1}));
    const std::string metrics = (co_await call(sglang.port(), "GET", "/metrics")).body;
    EXPECT_NE(metrics.find(R"(tp_rank="0",dp_rank="1"})"), std::string::npos);
  });
}

TEST_F(RanksTest, VllmHandsOffBetweenAnyRanks) {
  Server& prefill = start(ranks(2, Engine::Vllm, Role::Prefill));
  Server& decode = start(ranks(3, Engine::Vllm, Role::Decode));
  run([&]() -> Task {
    const json ask{{"max_tokens", 1}, {"kv_transfer_params", {{"do_remote_decode", true}}}};
    // Both ranks hold the same block numbers under different names.
    const json low = (co_await chat_on(prefill, "0", ask)).json()["kv_transfer_params"];
    const json high = (co_await chat_on(prefill, "1", ask)).json()["kv_transfer_params"];
    EXPECT_EQ(low["remote_block_ids"], high["remote_block_ids"]);
    EXPECT_NE(low["remote_engine_id"], high["remote_engine_id"]);
    json mixed = high;
    mixed["remote_engine_id"] = low["remote_engine_id"];
    EXPECT_EQ((co_await chat(decode, {{"kv_transfer_params", mixed}})).status, 500);
    for (const json& params : {high, low}) {
      EXPECT_EQ(text_of(co_await chat_on(decode, "2", {{"kv_transfer_params", params}})),
                expected_text());
    }
    const json now = co_await state(prefill);
    EXPECT_EQ(now["pinned"], 0);
    EXPECT_EQ(now["blocks_free"], now["blocks_total"]);
  });
}

TEST_F(RanksTest, SglangsPrefillRankFollowsTheRoom) {
  Server& prefill = start(ranks(4, Engine::Sglang, Role::Prefill));
  Server& decode = start(ranks(2, Engine::Sglang, Role::Decode));
  run([&]() -> Task {
    for (const std::int64_t room : {6, 9}) {
      const json fields{{"bootstrap_host", "127.0.0.1"},
                        {"bootstrap_port", prefill.bootstrap_port()},
                        {"bootstrap_room", room}};
      const auto [first, answer] = co_await (chat(prefill, fields) && chat_on(decode, "1", fields));
      EXPECT_EQ(text_of(first), expected_text(1));
      EXPECT_EQ(text_of(answer), expected_text());
    }
    EXPECT_EQ(co_await ranks_of(prefill), json({2, 1}));
    EXPECT_EQ(co_await ranks_of(decode), json({1, 1}));
    EXPECT_EQ((co_await chat_on(prefill, "1", {{"bootstrap_room", 6}})).status, 400);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

TEST_F(RanksTest, TensorRtLlmNamesTheRankThatHoldsTheContext) {
  Server& prefill = start(ranks(2, Engine::Trtllm, Role::Prefill));
  Server& decode = start(ranks(2, Engine::Trtllm, Role::Decode));
  run([&]() -> Task {
    const json ask{{"disaggregated_params", {{"request_type", "context_only"}}}};
    const json first = (co_await chat(prefill, ask)).json();
    json params = first["choices"][0]["disaggregated_params"];
    EXPECT_EQ(json::array({params["ctx_dp_rank"]}), co_await ranks_of(prefill));
    params["request_type"] = "generation_only";
    const Reply answer = co_await chat(decode, {{"disaggregated_params", params},
                                                {"prompt_token_ids", first["prompt_token_ids"]}});
    EXPECT_EQ(text_of(answer), expected_text());
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

TEST_F(RanksTest, SglangLegsWithSeveralChoicesMeetInARoomEach) {
  Server& prefill = start(ranks(2, Engine::Sglang, Role::Prefill));
  Server& decode = start(ranks(1, Engine::Sglang, Role::Decode));
  run([&]() -> Task {
    for (const bool stream : {false, true}) {
      const json fields{{"bootstrap_host", "127.0.0.1"},
                        {"bootstrap_port", prefill.bootstrap_port()},
                        {"bootstrap_room", stream ? 100 : 200},
                        {"stream", stream},
                        {"n", 3}};
      const auto [first, answer] = co_await (chat(prefill, fields) && chat(decode, fields));
      EXPECT_EQ(first.status, 200);
      EXPECT_EQ(answer.status, 200);
      if (!stream) EXPECT_EQ(text_of(answer), expected_text());
      if (!stream) EXPECT_EQ(answer.json()["choices"].size(), 3U);
    }
    for (const Server* server : {&prefill, &decode}) {
      const json now = co_await state(*server);
      for (const char* rest : {"running", "waiting", "pinned", "leaked", "refused"}) {
        EXPECT_EQ(now[rest], 0) << rest;
      }
      EXPECT_EQ(now["finished"], 2);
      EXPECT_EQ(now["blocks_free"], now["blocks_total"]);
    }
  });
}

}  // namespace
}  // namespace baton::sim
