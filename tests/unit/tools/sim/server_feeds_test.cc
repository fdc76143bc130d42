// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// What a simulated server tells of its KV blocks over HTTP.
#include "unit/tools/sim/loopback.h"

namespace baton::sim {
namespace {

using model::Engine;
using model::Role;
using nlohmann::json;

class ServerFeedsTest : public Loopback {
 protected:
  static Options telling(Engine engine, Role role = Role::Aggregated) {
    Options options = worker(engine, role);
    options.block_size = 4;
    if (engine == Engine::Trtllm) {
      options.kv.buffer = 1000;
    } else {
      options.kv.events = "tcp://127.0.0.1:0";
    }
    return options;
  }
  boost::asio::awaitable<json> blocks(const Server& server) {
    const Reply reply = co_await call(server.port(), "GET", "/sim/blocks");
    co_return reply.json();
  }
  static int cached(const Reply& reply) {
    return reply.json()["usage"]["prompt_tokens_details"].value("cached_tokens", 0);
  }
};

TEST_F(ServerFeedsTest, GeneratedTokensServeAsAPrefixAndAreTold) {
  Server& server = start(telling(Engine::Vllm));
  run([&]() -> Task {
    const json prompt{11, 12, 13, 14};
    const Reply first = co_await call(
        server.port(), "POST", "/v1/completions",
        {{"prompt", prompt}, {"max_tokens", 8}, {"ignore_eos", true}, {"return_token_ids", true}});
    json longer = prompt;
    for (const json& token : first.json()["choices"][0]["token_ids"]) longer.push_back(token);
    EXPECT_EQ(longer.size(), 12U);
    // The last token was never fed to the model: eleven tokens are two blocks.
    const json table = co_await blocks(server);
    EXPECT_EQ(table[0]["blocks"].size(), 2U);
    longer.push_back(99);
    EXPECT_EQ(cached(co_await call(server.port(), "POST", "/v1/completions",
                                   {{"prompt", longer}, {"max_tokens", 1}})),
              8);
    // The prompt's block, one that was generated, and one of the second prompt.
    EXPECT_EQ((co_await state(server))["kv_events"], 3);
  });
}

TEST_F(ServerFeedsTest, AdaptersAndSaltsHaveCachesOfTheirOwn) {
  Options options = telling(Engine::Vllm);
  options.loras = {"sql"};
  Server& server = start(options);
  run([&]() -> Task {
    EXPECT_EQ(cached(co_await chat(server, json::object())), 0);
    EXPECT_EQ(cached(co_await chat(server, {{"model", "sql"}})), 0);
    EXPECT_EQ(cached(co_await chat(server, {{"cache_salt", "s"}})), 0);
    EXPECT_GT(cached(co_await chat(server, {{"model", "sql"}})), 0);
    EXPECT_GT(cached(co_await chat(server, {{"cache_salt", "s"}})), 0);
    const Reply refused = co_await chat(server, {{"cache_salt", ""}});
    EXPECT_EQ(refused.status, 400);
  });
}

TEST_F(ServerFeedsTest, CachesAreEmptiedAsEachEngineDoesIt) {
  Server& vllm = start(telling(Engine::Vllm));
  Server& sglang = start(telling(Engine::Sglang));
  run([&]() -> Task {
    for (Server* server : {&vllm, &sglang}) {
      co_await chat(*server, json::object());
      EXPECT_GT((co_await blocks(*server))[0]["blocks"].size(), 0U);
    }
    EXPECT_EQ((co_await call(vllm.port(), "POST", "/reset_prefix_cache")).status, 200);
    EXPECT_EQ((co_await call(sglang.port(), "GET", "/flush_cache")).status, 200);
    for (Server* server : {&vllm, &sglang}) {
      EXPECT_EQ((co_await blocks(*server))[0]["blocks"].size(), 0U);
    }
    EXPECT_EQ((co_await call(sglang.port(), "POST", "/reset_prefix_cache")).status, 404);
  });
}

TEST_F(ServerFeedsTest, ACacheInUseIsNotEmptied) {
  Server& server = start(telling(Engine::Sglang));
  run([&]() -> Task {
    auto open =
        co_await open_chat(server, {{"stream", true}, {"ignore_eos", true}, {"max_tokens", 30000}});
    co_await until(server, [](const json& now) { return now["running"] == 1; });
    EXPECT_EQ((co_await call(server.port(), "POST", "/flush_cache")).status, 400);
    open.close();
    co_await until(server, [](const json& now) { return now["running"] == 0; });
    EXPECT_EQ((co_await call(server.port(), "POST", "/flush_cache")).status, 200);
  });
}

TEST_F(ServerFeedsTest, TrtllmsEventsAreFetchedOnce) {
  Server& server = start(telling(Engine::Trtllm));
  run([&]() -> Task {
    co_await call(server.port(), "POST", "/v1/completions",
                  {{"prompt", {11, 12, 13, 14, 15}}, {"max_tokens", 2}, {"ignore_eos", true}});
    const json events = (co_await call(server.port(), "POST", "/kv_cache_events")).json();
    EXPECT_EQ(events.size(), 3U);
    if (events.size() != 3) co_return;
    EXPECT_EQ(events[0]["data"]["type"], "created");
    EXPECT_EQ(events[1]["data"]["blocks"][0]["tokens"].size(), 4U);
    // The tail: the last prompt token and the first generated one.
    EXPECT_EQ(events[2]["data"]["blocks"][0]["tokens"].size(), 2U);
    EXPECT_EQ(events[2]["data"]["parent_hash"], events[1]["data"]["blocks"][0]["block_hash"]);
    EXPECT_EQ((co_await call(server.port(), "POST", "/kv_cache_events")).json(), json::array());
    EXPECT_EQ((co_await call(server.port(), "GET", "/kv_cache_events")).status, 404);
  });
}

TEST_F(ServerFeedsTest, SglangSaysWhereToSubscribe) {
  Options options = telling(Engine::Sglang);
  options.dp_size = 2;
  options.kv.topic = "kv@{model}";
  Server& on = start(options);
  Server& off = start(worker(Engine::Sglang));
  run([&]() -> Task {
    const json info = (co_await call(on.port(), "GET", "/server_info")).json()["kv_events"];
    EXPECT_EQ(info["publisher"], "zmq");
    EXPECT_EQ(info["endpoint_host"], "127.0.0.1");
    EXPECT_EQ(std::to_string(info["endpoint_port_base"].get<int>()),
              on.options().kv.events.substr(on.options().kv.events.rfind(':') + 1));
    EXPECT_EQ(info["topic"], "kv@demo");
    EXPECT_EQ(info["block_size"], 4);
    EXPECT_EQ(info["dp_size"], 2);
    EXPECT_TRUE((co_await call(off.port(), "GET", "/server_info")).json()["kv_events"].is_null());
  });
}

TEST_F(ServerFeedsTest, SglangsDecodeWorkerHasNoCacheUnlessTold) {
  Options with = telling(Engine::Sglang, Role::Decode);
  with.kv.decode_cache = true;
  Server& without_cache = start(telling(Engine::Sglang, Role::Decode));
  Server& with_cache = start(with);
  EXPECT_FALSE(without_cache.options().caches_prefixes());
  EXPECT_TRUE(with_cache.options().caches_prefixes());
  EXPECT_TRUE(telling(Engine::Vllm, Role::Decode).caches_prefixes());
  run([]() -> Task { co_return; });
}

TEST_F(ServerFeedsTest, ARestartOnRequestEmptiesTheCacheAndCountsAnew) {
  Server& server = start(telling(Engine::Vllm));
  run([&]() -> Task {
    co_await chat(server, json::object());
    EXPECT_GT((co_await blocks(server))[0]["next_seq"], 0);
    co_await call(server.port(), "POST", "/sim/faults", {{"kind", "kv_restart"}});
    const json after = co_await blocks(server);
    EXPECT_EQ(after[0]["next_seq"], 0);
    EXPECT_TRUE(after[0]["blocks"].empty());
    EXPECT_EQ((co_await call(server.port(), "GET", "/sim/faults")).json(), json::array());
  });
}

TEST_F(ServerFeedsTest, WhatCannotBeIsRefusedAtTheStart) {
  Options replay_only = worker(Engine::Vllm);
  replay_only.kv.replay = "tcp://127.0.0.1:0";
  Options wrong = worker(Engine::Vllm);
  wrong.kv.events = "127.0.0.1:0";
  Options host = worker(Engine::Trtllm);
  host.kv.host_blocks = 4;
  Options hashes = worker(Engine::Sglang);
  hashes.kv.host_hashes_only = true;
  for (const Options& options : {replay_only, wrong, host, hashes}) {
    Server server(io_, options);
    EXPECT_FALSE(server.start());
  }
}

}  // namespace
}  // namespace baton::sim
