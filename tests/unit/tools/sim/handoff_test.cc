// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Hand-offs between simulated workers over real sockets.
#include "unit/tools/sim/loopback.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace baton::sim {
namespace {

using boost::asio::experimental::awaitable_operators::operator&&;
using model::Engine;
using model::Role;
using nlohmann::json;

const json kPrefill{
    {"max_tokens", 1},
    {"kv_transfer_params", {{"do_remote_decode", true}, {"do_remote_prefill", false}}}};

using HandoffTest = Loopback;

TEST_F(HandoffTest, VllmDecodesWhatThePrefillWorkerHolds) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Server& decode = start(worker(Engine::Vllm, Role::Decode));
  run([&]() -> Task {
    const Reply first = co_await chat(prefill, kPrefill);
    const json params = first.json()["kv_transfer_params"];
    EXPECT_EQ((co_await state(prefill))["pinned"], params["remote_block_ids"][0].size());
    const Reply answer = co_await chat(decode, {{"stream", true}, {"kv_transfer_params", params}});
    EXPECT_EQ(text_of(answer), expected_text());
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await state(decode))["fetched"], 1);
    // The blocks are gone: nobody can use the parameters twice.
    const Reply again = co_await chat(decode, {{"kv_transfer_params", params}});
    EXPECT_EQ(again.status, 500);
    EXPECT_EQ((co_await state(decode))["refused"], 1);
  });
}

TEST_F(HandoffTest, VllmRefusesAnotherEnginesBlocksAndRecomputesWithoutRequestId) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Server& decode = start(worker(Engine::Vllm, Role::Decode));
  run([&]() -> Task {
    json params = (co_await chat(prefill, kPrefill)).json()["kv_transfer_params"];
    json other = params;
    other["remote_engine_id"] = "somebody else";
    EXPECT_EQ((co_await chat(decode, {{"kv_transfer_params", other}})).status, 500);
    params.erase("remote_request_id");
    EXPECT_EQ(text_of(co_await chat(decode, {{"kv_transfer_params", params}})), expected_text());
    const json now = co_await state(decode);
    EXPECT_EQ(now["refused"], 1);
    EXPECT_EQ(now["recomputed"], 1);
    EXPECT_EQ(now["fetched"], 0);
  });
}

TEST_F(HandoffTest, VllmWrongBlocksShowAsWrongText) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Server& decode = start(worker(Engine::Vllm, Role::Decode));
  run([&]() -> Task {
    json params = (co_await chat(prefill, kPrefill)).json()["kv_transfer_params"];
    std::swap(params["remote_block_ids"][0][0], params["remote_block_ids"][0][1]);
    const Reply answer = co_await chat(decode, {{"kv_transfer_params", params}});
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(text_of(answer), expected_text());
  });
}

TEST_F(HandoffTest, VllmKeepsItsBlocksWhenThePrefillAlreadyFinished) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Server& decode = start(worker(Engine::Vllm, Role::Decode));
  run([&]() -> Task {
    json fields = kPrefill;
    fields["stop"] = expected_text(1);
    const json answer = (co_await chat(prefill, fields)).json();
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    const json params = answer.at("kv_transfer_params");
    EXPECT_GT((co_await state(prefill))["pinned"], 0);
    // One that takes them, and one that comes too late.
    EXPECT_EQ((co_await chat(decode, {{"kv_transfer_params", params}})).status, 200);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await state(prefill))["unrecognized"], 0);
    EXPECT_EQ((co_await chat(decode, {{"kv_transfer_params", params}})).status, 500);
    EXPECT_EQ((co_await state(prefill))["unrecognized"], 1);
  });
}

TEST_F(HandoffTest, AVllmServerShowsItsConnectorInItsMetrics) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Server& plain = start(worker(Engine::Vllm));
  run([&]() -> Task {
    const std::string name = "vllm:nixl_num_notifications_after_expiry_total{";
    EXPECT_NE((co_await call(prefill.port(), "GET", "/metrics")).body.find(name),
              std::string::npos);
    EXPECT_EQ((co_await call(plain.port(), "GET", "/metrics")).body.find("nixl"),
              std::string::npos);
    json fields = kPrefill;
    const json answer = (co_await chat(plain, fields)).json();
    EXPECT_TRUE(answer.value("kv_transfer_params", json()).is_null());
    EXPECT_EQ((co_await state(plain))["pinned"], 0);
  });
}

TEST_F(HandoffTest, VllmLeaseRunsOutAndIsCounted) {
  Options options = worker(Engine::Vllm, Role::Prefill);
  options.lease_ms = 1;
  Server& prefill = start(options);
  run([&]() -> Task {
    co_await chat(prefill, kPrefill);
    co_await until(prefill,
                   [](const json& now) { return now["leaked"] > 0 && now["pinned"] == 0; });
    EXPECT_EQ((co_await state(prefill))["blocks_free"], prefill.options().blocks);
  });
}

TEST_F(HandoffTest, VllmARefusedOrAbandonedDecodeRequestLetsTheBlocksGo) {
  Server& prefill = start(worker(Engine::Vllm, Role::Prefill));
  Options slow = worker(Engine::Vllm, Role::Decode);
  slow.transfer_ms = 60000;
  Server& decode = start(slow);
  run([&]() -> Task {
    json params = (co_await chat(prefill, kPrefill)).json()["kv_transfer_params"];
    const Reply refused = co_await chat(decode, {{"model", "x"}, {"kv_transfer_params", params}});
    EXPECT_EQ(refused.status, 404);
    co_await until(prefill, [](const json& now) { return now["pinned"] == 0; });

    params = (co_await chat(prefill, kPrefill)).json()["kv_transfer_params"];
    {
      auto socket = co_await open_chat(decode, {{"stream", true}, {"kv_transfer_params", params}});
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
    }
    co_await until(decode, [](const json& now) { return now["aborted"] == 1; });
    co_await until(prefill, [](const json& now) { return now["pinned"] == 0; });
    EXPECT_EQ((co_await state(prefill))["leaked"], 0);
  });
}

json room(const Server& prefill, std::int64_t number) {
  return {{"bootstrap_host", "127.0.0.1"},
          {"bootstrap_port", prefill.bootstrap_port()},
          {"bootstrap_room", number}};
}

TEST_F(HandoffTest, SglangLegsMeetInTheRoom) {
  Server& prefill = start(worker(Engine::Sglang, Role::Prefill));
  Server& decode = start(worker(Engine::Sglang, Role::Decode));
  run([&]() -> Task {
    // Either leg may come first.
    for (std::int64_t number = 1; number <= 4; ++number) {
      Server& one = number % 2 == 0 ? prefill : decode;
      Server& other = number % 2 == 0 ? decode : prefill;
      json fields = room(prefill, number);
      fields["stream"] = number > 2;
      const auto [a, b] = co_await (chat(one, fields) && chat(other, fields));
      EXPECT_EQ(text_of(number % 2 == 0 ? b : a), expected_text());
      EXPECT_EQ(text_of(number % 2 == 0 ? a : b), expected_text(1));
    }
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await state(decode))["fetched"], 4);
  });
}

TEST_F(HandoffTest, SglangDecodeFailsAtOnceWhenThePrefillLegIsAborted) {
  Server& prefill = start(worker(Engine::Sglang, Role::Prefill));
  Server& decode = start(worker(Engine::Sglang, Role::Decode));
  run([&]() -> Task {
    {
      auto socket = co_await open_chat(prefill, room(prefill, 9));
      co_await until(prefill, [](const json& now) { return now["pinned"] > 0; });
    }
    co_await until(prefill, [](const json& now) { return now["aborted"] == 1; });
    const Reply answer = co_await chat(decode, room(prefill, 9));
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.json()["object"], "error");
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

TEST_F(HandoffTest, SglangAPrefillLegClosedWhileItsBlocksMoveIsCounted) {
  Server& prefill = start(worker(Engine::Sglang, Role::Prefill));
  Options slow = worker(Engine::Sglang, Role::Decode);
  slow.transfer_ms = 1000;
  Server& decode = start(slow);
  run([&]() -> Task {
    const auto closed_when = [&](std::int64_t number, const char* key) -> Task {
      auto socket = co_await open_chat(prefill, room(prefill, number));
      co_await until(prefill, [key](const json& now) { return now[key] > 0; });
    };
    co_await closed_when(1, "pinned");
    co_await until(prefill, [](const json& now) { return now["aborted"] == 1; });
    EXPECT_EQ((co_await state(prefill))["cut_transfers"], 0);

    const Reply answer =
        co_await (chat(decode, room(prefill, 2)) && closed_when(2, "transferring"));
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ((co_await state(prefill))["cut_transfers"], 1);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await state(decode))["fetched"], 0);
  });
}

TEST_F(HandoffTest, SglangADecodeLegThatLeftCutsNothing) {
  Server& prefill = start(worker(Engine::Sglang, Role::Prefill));
  Options slow = worker(Engine::Sglang, Role::Decode);
  slow.transfer_ms = 60000;
  Server& decode = start(slow);
  run([&]() -> Task {
    {
      auto leg = co_await open_chat(prefill, room(prefill, 1));
      {
        auto partner = co_await open_chat(decode, room(prefill, 1));
        co_await until(prefill, [](const json& now) { return now["transferring"] == 1; });
      }
      co_await until(prefill, [](const json& now) { return now["transferring"] == 0; });
      EXPECT_GT((co_await state(prefill))["pinned"], 0);
    }
    co_await until(prefill, [](const json& now) { return now["aborted"] == 1; });
    EXPECT_EQ((co_await state(prefill))["cut_transfers"], 0);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

TEST_F(HandoffTest, PrefillAnswersTellWhatTheirPrefixCacheHeld) {
  const std::vector<std::pair<Engine, json>> legs{
      {Engine::Vllm, kPrefill},
      {Engine::Trtllm, {{"disaggregated_params", {{"request_type", "context_only"}}}}}};
  for (const auto& [engine, leg] : legs) start(worker(engine, Role::Prefill));
  Server& sglang = start(worker(Engine::Sglang, Role::Prefill));
  Server& decode = start(worker(Engine::Sglang, Role::Decode));
  run([&]() -> Task {
    // 14 prompt tokens in blocks of 4; the last token is always computed.
    const auto cached = [](const Reply& reply) {
      const json usage = reply.json()["usage"];
      EXPECT_EQ(usage["prompt_tokens"], 14);
      return usage["prompt_tokens_details"]["cached_tokens"].get<int>();
    };
    for (std::size_t i = 0; i < legs.size(); ++i) {
      EXPECT_EQ(cached(co_await chat(*servers_[i], legs[i].second)), 0);
      EXPECT_EQ(cached(co_await chat(*servers_[i], legs[i].second)), 12);
    }
    for (std::int64_t number = 1; number <= 2; ++number) {
      const auto [prefilled, decoded] =
          co_await (chat(sglang, room(sglang, number)) && chat(decode, room(sglang, number)));
      EXPECT_EQ(cached(prefilled), number == 1 ? 0 : 12);
      EXPECT_EQ(cached(decoded), 14);
    }
  });
}

TEST_F(HandoffTest, SglangLegsWithoutAPartnerFailAfterTheLease) {
  Options options = worker(Engine::Sglang, Role::Prefill);
  options.lease_ms = 20;
  Server& prefill = start(options);
  options.role = Role::Decode;
  Server& decode = start(options);
  run([&]() -> Task {
    EXPECT_EQ((co_await chat(decode, room(prefill, 1))).status, 500);
    EXPECT_EQ((co_await chat(prefill, room(prefill, 2))).status, 500);
    EXPECT_GT((co_await state(prefill))["leaked"], 0);
    EXPECT_EQ((co_await state(decode))["refused"], 1);
  });
}

json context(std::int64_t id) {
  return {{"disaggregated_params", {{"request_type", "context_only"}, {"disagg_request_id", id}}}};
}

TEST_F(HandoffTest, TensorRtLlmContinuesTheContextAnswer) {
  Server& prefill = start(worker(Engine::Trtllm, Role::Prefill));
  Server& decode = start(worker(Engine::Trtllm, Role::Decode));
  run([&]() -> Task {
    const json first = (co_await chat(prefill, context(std::int64_t{1} << 41))).json();
    json params = first["choices"][0]["disaggregated_params"];
    EXPECT_EQ(params["disagg_request_id"], std::int64_t{1} << 41);
    params["request_type"] = "generation_only";
    params["ctx_usage"] = first["usage"];
    const Reply answer = co_await chat(decode, {{"stream", true},
                                                {"disaggregated_params", params},
                                                {"prompt_token_ids", first["prompt_token_ids"]}});
    EXPECT_EQ(text_of(answer), expected_text());
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

TEST_F(HandoffTest, TensorRtLlmRefusesAFirstTokenThatIsNotTheContexts) {
  Server& prefill = start(worker(Engine::Trtllm, Role::Prefill));
  Server& decode = start(worker(Engine::Trtllm, Role::Decode));
  run([&]() -> Task {
    const json first = (co_await chat(prefill, context(std::int64_t{1} << 41))).json();
    json params = first["choices"][0]["disaggregated_params"];
    params["request_type"] = "generation_only";
    params["first_gen_tokens"] = {1};
    const Reply answer = co_await chat(decode, {{"disaggregated_params", params},
                                                {"prompt_token_ids", first["prompt_token_ids"]}});
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ((co_await state(decode))["refused"], 1);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
  });
}

}  // namespace
}  // namespace baton::sim
