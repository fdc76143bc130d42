// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_info.h"

#include "unit/tools/sim/loopback.h"

#include <tuple>

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;

class SglangInfoTest : public Loopback {
 protected:
  Server& start_sglang(Role role = Role::Aggregated, std::uint32_t ranks = 1,
                       std::string version = {}) {
    Options options = worker(Engine::Sglang, role);
    options.dp_size = ranks;
    options.version = std::move(version);
    return start(options);
  }
};

TEST_F(SglangInfoTest, LoadsAreToldByRankAndSection) {
  Server& server = start_sglang(Role::Prefill, 2);
  run([&]() -> Task {
    const json all = (co_await call(server.port(), "GET", "/v1/loads")).json();
    EXPECT_EQ(all["version"], "0.5.23");
    EXPECT_EQ(all["loads"].size(), 2U);
    EXPECT_EQ(all["loads"][1]["dp_rank"], 1);
    EXPECT_EQ(all["loads"][0]["num_running_reqs"], 0);
    EXPECT_EQ(all["loads"][0]["disaggregation"]["mode"], "prefill");
    EXPECT_EQ(all["loads"][0]["disaggregation"]["prefill_inflight_queue_reqs"], 0);
    EXPECT_EQ(all["loads"][0]["queues"]["grammar"], 0);
    const json core =
        (co_await call(server.port(), "GET", "/v1/loads?include=core&dp_rank=1")).json()["loads"];
    EXPECT_EQ(core.size(), 1U);
    EXPECT_FALSE(core[0].contains("queues") || core[0].contains("disaggregation"));
    const json some = (co_await call(server.port(), "GET", "/v1/loads?include=core,disagg")).json();
    EXPECT_TRUE(some["loads"][0].contains("disaggregation"));
    EXPECT_FALSE(some["loads"][0].contains("queues"));
    EXPECT_EQ((co_await call(server.port(), "GET", "/v1/loads?include=all,more")).status, 500);
    const auto beyond = co_await call(server.port(), "GET", "/v1/loads?dp_rank=2");
    EXPECT_EQ(beyond.json()["loads"], json::array());
    EXPECT_EQ((co_await call(server.port(), "GET", "/v1/loads?dp_rank=x")).status, 400);
  });
}

TEST_F(SglangInfoTest, OlderReleasesHaveTheOlderPath) {
  Server& older = start_sglang(Role::Aggregated, 2, "0.5.18");
  Server& newer = start_sglang();
  run([&]() -> Task {
    const json loads = (co_await call(older.port(), "GET", "/get_load")).json();
    EXPECT_EQ(loads.size(), 2U);
    EXPECT_EQ(loads[1]["dp_rank"], 1);
    EXPECT_EQ((co_await call(newer.port(), "GET", "/get_load")).status, 404);
  });
}

TEST_F(SglangInfoTest, TheModelIsToldUnderBothNames) {
  Server& server = start_sglang(Role::Decode);
  Server& vllm = start(worker(Engine::Vllm));
  run([&]() -> Task {
    for (const char* path : {"/model_info", "/get_model_info"}) {
      const json info = (co_await call(server.port(), "GET", path)).json();
      EXPECT_EQ(info["served_model_name"], server.options().model);
      EXPECT_EQ(info["is_generation"], true);
      EXPECT_EQ(info["disaggregation_mode"], "decode");
      EXPECT_EQ((co_await call(vllm.port(), "GET", path)).status, 404);
    }
    EXPECT_EQ((co_await call(server.port(), "GET", "/ready")).status, 200);
  });
}

// Regression: what a real server calls attn_dp_size.
TEST_F(SglangInfoTest, RanksOfAttentionAreToldAsTheReleaseDoes) {
  for (const auto& [version, replicas, groups] :
       {std::tuple{"0.5.23", 1, json(4)}, {"0.5.18", 4, json()}}) {
    Options options = worker(Engine::Sglang);
    options.dp_size = 4;
    options.dp_attention = true;
    options.version = version;
    Server& server = start(options);
    run([&]() -> Task {
      const json info = (co_await call(server.port(), "GET", "/server_info")).json();
      EXPECT_EQ(info["dp_size"], replicas) << version;
      EXPECT_EQ(info.value("attn_dp_size", json()), groups) << version;
      EXPECT_EQ(info["enable_dp_attention"], true) << version;
    });
  }
}

TEST_F(SglangInfoTest, ANameIsTakenOnceAndAbortsAllThatBeginWithIt) {
  Options slow = worker(Engine::Sglang);
  slow.decode_ms = 1;
  slow.min_output = slow.max_output = 10'000;
  slow.disconnect_ms = 3'600'000;
  Server& server = start(slow);
  run([&]() -> Task {
    const auto running = [](int count) {
      return [count](const json& state) { return state["running"] == count; };
    };
    auto first = co_await open_chat(server, {{"rid", "a"}, {"stream", true}});
    const auto second = co_await open_chat(server, {{"rid", "ab"}, {"stream", true}});
    co_await until(server, running(2));
    const Reply again = co_await chat(server, {{"rid", "a"}});
    EXPECT_EQ(again.status, 400);
    EXPECT_EQ(again.json()["message"], "Duplicate request ID detected: a");
    first.close();
    EXPECT_EQ((co_await call(server.port(), "POST", "/abort_request", {{"rid", "b"}})).status, 200);
    EXPECT_EQ((co_await state(server))["running"], 2) << "it has not noticed that one has gone";
    EXPECT_EQ((co_await call(server.port(), "POST", "/abort_request", {{"rid", "a"}})).status, 200);
    co_await until(server, running(0));
    EXPECT_EQ((co_await state(server))["aborted"], 2);
  });
}

}  // namespace
}  // namespace baton::sim
