// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Hand-offs whose two legs run at the same time, over real sockets.
#include "unit/tools/sim/loopback.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <chrono>
#include <string>

namespace baton::sim {
namespace {

using boost::asio::experimental::awaitable_operators::operator&&;
using model::HandoffMode;
using model::Role;
using nlohmann::json;

constexpr const char* kName = "prefill-engine";

class TogetherTest : public Loopback, public testing::WithParamInterface<HandoffMode> {
 protected:
  Options worker_of(HandoffMode mode, Role role) {
    Options options = worker(model::engine_of(mode), role);
    options.handoff = mode;
    if (role == Role::Prefill) options.engine_id = kName;
    return options;
  }
  Options worker_of(Role role) { return worker_of(GetParam(), role); }

  // What the two legs of one request carry.
  static HeaderList headers(int ticket) {
    return {{"X-Request-Id", "request-" + std::to_string(ticket)}};
  }

  static json prefill_leg(HandoffMode mode, int ticket) {
    if (mode == HandoffMode::GenerationFirst) {
      return {{"disaggregated_params",
               {{"request_type", "context_only"},
                {"schedule_style", 1},
                {"disagg_request_id", (std::int64_t{1} << 41) + ticket}}}};
    }
    json params{{"do_remote_decode", true}, {"do_remote_prefill", false}};
    if (mode == HandoffMode::Mooncake) params["transfer_id"] = "t" + std::to_string(ticket);
    return {{"max_tokens", 1}, {"ignore_eos", true}, {"kv_transfer_params", params}};
  }

  static json decode_leg(const Server& prefill, int ticket) {
    const HandoffMode mode = prefill.options().mode();
    if (mode == HandoffMode::GenerationFirst) {
      const std::int64_t id = (std::int64_t{1} << 41) + ticket;
      return {{"disaggregated_params",
               {{"request_type", "generation_only"},
                {"schedule_style", 1},
                {"disagg_request_id", id},
                {"ctx_request_id", id},
                {"ctx_info_endpoint", "tcp://127.0.0.1:" + std::to_string(prefill.port())}}}};
    }
    json params{
        {"do_remote_decode", false}, {"do_remote_prefill", true}, {"remote_engine_id", kName}};
    if (mode == HandoffMode::Mooncake) {
      params["remote_bootstrap_addr"] =
          "http://127.0.0.1:" + std::to_string(prefill.bootstrap_port());
      params["transfer_id"] = "t" + std::to_string(ticket);
    } else {
      params.update({{"remote_host", "127.0.0.1"},
                     {"remote_port", prefill.port()},
                     {"tp_size", 1},
                     {"pp_size", 1},
                     {"remote_request_id", "request-" + std::to_string(ticket)}});
    }
    return {{"kv_transfer_params", params}};
  }

  boost::asio::awaitable<Reply> prefill_chat(const Server& prefill, int ticket) {
    return chat(prefill, prefill_leg(prefill.options().mode(), ticket), headers(ticket));
  }
  boost::asio::awaitable<Reply> decode_chat(const Server& decode, const Server& prefill,
                                            int ticket) {
    return chat(decode, decode_leg(prefill, ticket), headers(ticket));
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, TogetherTest,
                         testing::Values(HandoffMode::NixlPush, HandoffMode::Mooncake,
                                         HandoffMode::GenerationFirst),
                         [](const auto& info) {
                           return std::string(model::to_string(info.param));
                         });

TEST_P(TogetherTest, TheLegsMeetInWhateverOrderTheyCome) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    const auto [first, answer] =
        co_await (prefill_chat(prefill, 1) && decode_chat(decode, prefill, 1));
    EXPECT_EQ(text_of(first), expected_text(1));
    EXPECT_EQ(text_of(answer), expected_text());

    const auto prefill_after_decode_waits = [&]() -> Task {
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
      EXPECT_EQ((co_await prefill_chat(prefill, 2)).status, 200);
    };
    const Reply early = co_await (decode_chat(decode, prefill, 2) && prefill_after_decode_waits());
    EXPECT_EQ(text_of(early), expected_text());

    EXPECT_EQ((co_await prefill_chat(prefill, 3)).status, 200);
    EXPECT_GT((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ(text_of(co_await decode_chat(decode, prefill, 3)), expected_text());
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await state(decode))["fetched"], 3);
  });
}

TEST_P(TogetherTest, AnAbortedPrefillLegFailsTheDecodeLegAtOnceAndHoldsNothing) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    const Reply on =
        co_await call(prefill.port(), "POST", "/sim/faults", {{"kind", "hang_stream"}});
    EXPECT_EQ(on.status, 200);
    const auto aborted = [&]() -> Task {
      auto socket = co_await open_chat(prefill, prefill_leg(GetParam(), 1), headers(1));
      co_await until(prefill, [](const json& now) { return now["requests"] == 1; });
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
    };
    const auto begun = std::chrono::steady_clock::now();
    const Reply answer = co_await (decode_chat(decode, prefill, 1) && aborted());
    EXPECT_EQ(answer.status, 500);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
    // Also one that comes only now.
    EXPECT_EQ((co_await decode_chat(decode, prefill, 1)).status, 500);
    const json now = co_await state(prefill);
    EXPECT_EQ(now["aborted"], 1);
    EXPECT_EQ(now["pinned"], 0);
    EXPECT_EQ(now["blocks_free"], prefill.options().blocks);

    // Computed, but not yet answered.
    co_await call(prefill.port(), "DELETE", "/sim/faults");
    const json slow{{"kind", "slow"}, {"delay_ms", 60000}, {"count", 1}};
    EXPECT_EQ((co_await call(prefill.port(), "POST", "/sim/faults", slow)).status, 200);
    {
      auto socket = co_await open_chat(prefill, prefill_leg(GetParam(), 2), headers(2));
      co_await until(prefill, [](const json& seen) { return seen["pinned"] > 0; });
    }
    co_await until(prefill, [](const json& seen) { return seen["aborted"] == 2; });
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await decode_chat(decode, prefill, 2)).status, 500);

    // A new prefill leg makes the same ids good again.
    EXPECT_EQ((co_await prefill_chat(prefill, 1)).status, 200);
    EXPECT_EQ(text_of(co_await decode_chat(decode, prefill, 1)), expected_text());
  });
}

TEST_P(TogetherTest, ADecodeLegThatLeavesDoesNotFreeTheBlocksButAnotherOneCanTakeThem) {
  if (GetParam() == HandoffMode::NixlPush) return;  // see APushGoesOnWithoutTheRequestThatWaits
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  Options slow = worker_of(Role::Decode);
  slow.transfer_ms = 60000;
  Server& loading = start(slow);
  run([&]() -> Task {
    {  // leaves before there is anything to take
      auto socket = co_await open_chat(decode, decode_leg(prefill, 1), headers(1));
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
    }
    co_await until(decode, [](const json& now) { return now["aborted"] == 1; });
    EXPECT_EQ((co_await prefill_chat(prefill, 1)).status, 200);
    EXPECT_GT((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ(text_of(co_await decode_chat(decode, prefill, 1)), expected_text());
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);

    EXPECT_EQ((co_await prefill_chat(prefill, 2)).status, 200);
    {  // leaves while it takes them
      auto socket = co_await open_chat(loading, decode_leg(prefill, 2), headers(2));
      co_await until(prefill, [](const json& now) { return now["transferring"] == 1; });
    }
    co_await until(loading, [](const json& now) { return now["aborted"] == 1; });
    EXPECT_GT((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ(text_of(co_await decode_chat(decode, prefill, 2)), expected_text());
    const json now = co_await state(prefill);
    EXPECT_EQ(now["pinned"], 0);
    EXPECT_EQ(now["leaked"], 0);
  });
}

TEST_P(TogetherTest, APushGoesOnWithoutTheRequestThatWaits) {
  if (GetParam() != HandoffMode::NixlPush) return;
  Server& prefill = start(worker_of(Role::Prefill));
  Options slow = worker_of(Role::Decode);
  slow.transfer_ms = 50;
  Server& decode = start(slow);
  run([&]() -> Task {
    {  // leaves before there is anything to take
      auto socket = co_await open_chat(decode, decode_leg(prefill, 1), headers(1));
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
    }
    co_await until(decode, [](const json& now) { return now["aborted"] == 1; });
    EXPECT_EQ((co_await prefill_chat(prefill, 1)).status, 200);
    co_await until(prefill, [](const json& now) { return now["pinned"] == 0; });
    EXPECT_EQ((co_await state(prefill))["leaked"], 0);
    EXPECT_EQ((co_await state(decode))["stranded"], 0);

    // A prefill leg that is closed never writes.
    const json hang{{"kind", "hang"}, {"count", 1}};
    EXPECT_EQ((co_await call(prefill.port(), "POST", "/sim/faults", hang)).status, 200);
    {
      auto socket = co_await open_chat(decode, decode_leg(prefill, 2), headers(2));
      co_await until(decode, [](const json& now) { return now["waiting"] == 1; });
    }
    co_await until(decode, [](const json& now) { return now["aborted"] == 2; });
    const json slow_prefill{{"kind", "slow"}, {"delay_ms", 60000}, {"count", 1}};
    co_await call(prefill.port(), "DELETE", "/sim/faults");
    EXPECT_EQ((co_await call(prefill.port(), "POST", "/sim/faults", slow_prefill)).status, 200);
    {
      auto socket = co_await open_chat(prefill, prefill_leg(GetParam(), 2), headers(2));
      co_await until(prefill, [](const json& now) { return now["requests"] == 2; });
    }
    co_await until(decode, [](const json& now) { return now["stranded"] == 1; });
  });
}

TEST_P(TogetherTest, LegsWithoutAPartnerGiveUpWithTheirLease) {
  Options options = worker_of(Role::Prefill);
  options.lease_ms = 20;
  Server& prefill = start(options);
  options = worker_of(Role::Decode);
  options.lease_ms = 20;
  Server& decode = start(options);
  run([&]() -> Task {
    EXPECT_EQ((co_await decode_chat(decode, prefill, 1)).status, 500);
    EXPECT_EQ((co_await state(decode))["refused"], 1);
    EXPECT_EQ((co_await prefill_chat(prefill, 2)).status, 200);
    co_await until(prefill,
                   [](const json& now) { return now["leaked"] > 0 && now["pinned"] == 0; });
  });
}

TEST_P(TogetherTest, WrongBlocksShowAsWrongText) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    json leg = prefill_leg(GetParam(), 1);
    leg["messages"] = {{{"role", "user"}, {"content", "another prompt of six words or so"}}};
    EXPECT_EQ((co_await chat(prefill, leg, headers(1))).status, 200);
    const Reply answer = co_await decode_chat(decode, prefill, 1);
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(text_of(answer), expected_text());
  });
}

TEST_F(Loopback, AModeOfAnotherEngineIsRefusedAtTheStart) {
  Options options = worker(model::Engine::Sglang, Role::Prefill);
  options.handoff = HandoffMode::Mooncake;
  Server server(io_, options);
  EXPECT_FALSE(server.start());
}

class PushTest : public TogetherTest {};
INSTANTIATE_TEST_SUITE_P(Mode, PushTest, testing::Values(HandoffMode::NixlPush));

TEST_P(PushTest, ThePrefillAnswerTellsWhatADecodeLegMustSay) {
  Options options = worker_of(Role::Prefill);
  options.dp_size = 2;
  options.tp_size = 4;
  options.pp_size = 2;
  Server& prefill = start(options);
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    HeaderList second = headers(1);
    second.emplace_back("X-data-parallel-rank", "1");
    const json params =
        (co_await chat(prefill, prefill_leg(GetParam(), 1), second)).json()["kv_transfer_params"];
    EXPECT_EQ(params["transfer_mode"], "push");
    EXPECT_EQ(params["remote_engine_id"], std::string(kName) + "_dp1");
    EXPECT_EQ(params["tp_size"], 4);
    EXPECT_EQ(params["pp_size"], 2);
    EXPECT_EQ(params["remote_port"], prefill.port());
    EXPECT_TRUE(params["remote_request_id"].get<std::string>().starts_with("chatcmpl-request-1-"));
    const Reply answer = co_await chat(decode, {{"kv_transfer_params", params}}, headers(1));
    EXPECT_EQ(text_of(answer), expected_text());
  });
}

TEST_P(PushTest, AWrongEngineOrShapeFailsAtOnce) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    int refused = 0;
    for (const json& wrong : std::vector<json>{{{"remote_engine_id", "another"}},
                                               {{"remote_engine_id", std::string(kName) + "_dp0"}},
                                               {{"tp_size", 2}},
                                               {{"tp_size", nullptr}},
                                               {{"pp_size", 2}}}) {
      json leg = decode_leg(prefill, 1);
      leg["kv_transfer_params"].update(wrong);
      EXPECT_EQ((co_await chat(decode, leg, headers(1))).status, 500) << wrong;
      EXPECT_EQ((co_await state(decode))["refused"], ++refused);
    }
    json leg = decode_leg(prefill, 1);
    leg["kv_transfer_params"].erase("remote_request_id");
    EXPECT_EQ(text_of(co_await chat(decode, leg, headers(1))), expected_text());
    EXPECT_EQ((co_await state(decode))["recomputed"], 1);
  });
}

TEST_P(PushTest, BlocksOfAPrefillThatStoppedAreKeptToo) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    json leg = prefill_leg(GetParam(), 1);
    leg["stop"] = expected_text(1);
    EXPECT_EQ((co_await chat(prefill, leg, headers(1))).json()["choices"][0]["finish_reason"],
              "stop");
    EXPECT_EQ(text_of(co_await decode_chat(decode, prefill, 1)), expected_text());
  });
}

class MooncakeTest : public TogetherTest {};
INSTANTIATE_TEST_SUITE_P(Mode, MooncakeTest, testing::Values(HandoffMode::Mooncake));

TEST_P(MooncakeTest, TheBootstrapServerNamesTheRanksAndThePrefillAnswerNothing) {
  Options options = worker_of(Role::Prefill);
  options.dp_size = 2;
  Server& prefill = start(options);
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    const json ranks = (co_await call(prefill.bootstrap_port(), "GET", "/query")).json();
    EXPECT_EQ(ranks["0"]["engine_id"], std::string(kName) + "_dp0");
    EXPECT_EQ(ranks["1"]["engine_id"], std::string(kName) + "_dp1");
    EXPECT_EQ(ranks["1"]["worker_addr"]["0"]["0"], "127.0.0.1:" + std::to_string(prefill.port()));

    HeaderList second = headers(1);
    second.emplace_back("X-data-parallel-rank", "1");
    const json first = (co_await chat(prefill, prefill_leg(GetParam(), 1), second)).json();
    EXPECT_EQ(first["kv_transfer_params"], nullptr);
    json leg = decode_leg(prefill, 1);
    for (const std::string name : {"_dp0", "_dp2"}) {  // holds nothing; does not exist
      leg["kv_transfer_params"]["remote_engine_id"] = kName + name;
      EXPECT_EQ((co_await chat(decode, leg)).status, 500);
    }
    leg["kv_transfer_params"]["remote_engine_id"] = ranks["1"]["engine_id"];
    EXPECT_EQ(text_of(co_await chat(decode, leg)), expected_text());
  });
}

TEST_P(MooncakeTest, AnEndAsFirstTokenLetsTheBlocksGoUnlessItIsIgnored) {
  Options options = worker_of(Role::Prefill);
  options.min_output = options.max_output = 0;
  Server& prefill = start(options);
  options = worker_of(Role::Decode);
  Server& slow = start(options);
  options.lease_ms = 20;
  Server& decode = start(options);
  run([&]() -> Task {
    json leg = prefill_leg(GetParam(), 1);
    leg["ignore_eos"] = false;
    const json ended = (co_await chat(prefill, leg)).json();
    EXPECT_EQ(ended["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(ended["usage"]["completion_tokens"], 0);
    EXPECT_EQ((co_await state(prefill))["pinned"], 0);
    EXPECT_EQ((co_await decode_chat(decode, prefill, 1)).status, 500);

    EXPECT_EQ((co_await prefill_chat(prefill, 2)).status, 200);
    EXPECT_EQ(text_of(co_await decode_chat(slow, prefill, 2)), expected_text());
  });
}

class GenerationFirstTest : public TogetherTest {};
INSTANTIATE_TEST_SUITE_P(Mode, GenerationFirstTest, testing::Values(HandoffMode::GenerationFirst));

TEST_P(GenerationFirstTest, TheServerInfoOfAContextWorkerLeadsToItsBlocks) {
  Server& prefill = start(worker_of(Role::Prefill));
  Server& decode = start(worker_of(Role::Decode));
  run([&]() -> Task {
    const json info =
        (co_await call(prefill.port(), "GET", "/server_info")).json()["disaggregated_params"];
    EXPECT_TRUE(info["ctx_info_endpoint"].is_array());
    json leg = decode_leg(prefill, 1);
    leg["disaggregated_params"]["ctx_info_endpoint"] = info["ctx_info_endpoint"].front();
    const auto [first, answer] = co_await (prefill_chat(prefill, 1) && chat(decode, leg));
    EXPECT_EQ(text_of(answer), expected_text());
    EXPECT_EQ(first.json()["choices"][0]["disaggregated_params"]["schedule_style"], 1);
  });
}

}  // namespace
}  // namespace baton::sim
