// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/peer_directory.h"

#include "support/no_descriptors.h"
#include "unit/http_client/exchange_fixture.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace baton::engine {
namespace {

using model::HandoffMode;
using test::FakeEngine;
using test::response;
using testing::HasSubstr;
using testing::StartsWith;

struct PeerDirectoryTest : http_client::ExchangeFixture {
  static model::WorkerSpec worker(HandoffMode mode, const model::Endpoint& endpoint) {
    model::WorkerSpec spec;
    spec.endpoint = endpoint;
    spec.engine = model::engine_of(mode);
    spec.role = model::Role::Prefill;
    spec.handoff = mode;
    return spec;
  }
  Result<PrefillPeer> ask(const model::WorkerSpec& spec, std::uint32_t rank = 0,
                          std::uint64_t id = 1) {
    Result<PrefillPeer> found;
    run([&]() -> awaitable<void> { found = co_await directory.find({id}, spec, rank); });
    return found;
  }
  PrefillPeer find(const model::WorkerSpec& spec, std::uint32_t rank = 0, std::uint64_t id = 1) {
    const auto found = ask(spec, rank, id);
    EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().message());
    return found.value_or(PrefillPeer());
  }
  void learn(std::uint64_t worker, std::uint32_t rank, std::string_view kv_transfer_params) {
    directory.learn({worker}, rank, nixl_peer_in(kv_transfer_params).value());
  }

  PeerDirectory directory{pool, timeouts};
};

TEST_F(PeerDirectoryTest, AsksNothingForModesWhoseDecodeFollowsThePrefill) {
  for (const auto mode : {HandoffMode::NixlPull, HandoffMode::ContextFirst}) {
    const auto spec = worker(mode, test::closed_endpoint());
    EXPECT_EQ(find(spec).host, "127.0.0.1");
  }
}

// Else the prefill worker would be blamed for not telling its port.
TEST_F(PeerDirectoryTest, SaysWhereThisMachineCannotAsk) {
  for (const auto mode : {HandoffMode::Bootstrap, HandoffMode::Mooncake}) {
    const auto spec = worker(mode, test::closed_endpoint());
    const test::NoDescriptors none;
    const auto found = ask(spec);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), Errc::OutOfResources) << found.error().message();
  }
}

// ---- SGLang ----

TEST_F(PeerDirectoryTest, BelievesAConfiguredBootstrapPort) {
  auto spec = worker(HandoffMode::Bootstrap, test::closed_endpoint());
  spec.bootstrap_port = 9000;
  EXPECT_EQ(find(spec).bootstrap_port, 9000);
  EXPECT_EQ(find(spec).host, "127.0.0.1");
}

TEST_F(PeerDirectoryTest, AsksForTheBootstrapPortOnce) {
  const FakeEngine engine(test::always(
      response(200, R"({"version":"0.5","disaggregation_bootstrap_port":65535,"x":[]})")));
  const auto spec = worker(HandoffMode::Bootstrap, engine.endpoint());
  EXPECT_EQ(find(spec).bootstrap_port, 65535);
  EXPECT_EQ(find(spec).bootstrap_port, 65535);
  ASSERT_EQ(engine.requests().size(), 1U);
  EXPECT_THAT(engine.requests()[0].head, StartsWith("GET /server_info HTTP/1.1\r\n"));
}

TEST_F(PeerDirectoryTest, AsksAgainAboutAWorkerThatWasLost) {
  const FakeEngine engine(test::always(response(200, R"({"disaggregation_bootstrap_port":1})")));
  const auto spec = worker(HandoffMode::Bootstrap, engine.endpoint());
  EXPECT_EQ(find(spec).bootstrap_port, 1);
  directory.forget({2});
  EXPECT_EQ(find(spec).bootstrap_port, 1);
  EXPECT_EQ(engine.requests().size(), 1U);
  directory.forget({1});
  EXPECT_EQ(find(spec).bootstrap_port, 1);
  EXPECT_EQ(engine.requests().size(), 2U);
}

TEST_F(PeerDirectoryTest, LeavesTheBootstrapPortOpenWhereTheWorkerDoesNotSay) {
  std::uint64_t id = 10;
  for (const std::string& answer :
       {response(404, R"({"disaggregation_bootstrap_port":8998})"), response(200, "{}"),
        response(200, "no JSON"), response(200, R"({"disaggregation_bootstrap_port":null})"),
        response(200, R"({"disaggregation_bootstrap_port":0})"),
        response(200, R"({"disaggregation_bootstrap_port":-1})"),
        response(200, R"({"disaggregation_bootstrap_port":65536})"),
        response(200, R"({"disaggregation_bootstrap_port":"8998"})"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{")}) {
    const FakeEngine engine([&](test::FakePeer& peer) {
      peer.read_request();
      peer.write(answer);
    });
    EXPECT_EQ(find(worker(HandoffMode::Bootstrap, engine.endpoint()), 0, ++id).bootstrap_port,
              std::nullopt)
        << answer;
  }
}

TEST_F(PeerDirectoryTest, SaysThatTheWorkerIsNotThere) {
  for (const auto mode : {HandoffMode::Bootstrap, HandoffMode::GenerationFirst}) {
    const auto found = ask(worker(mode, test::closed_endpoint()));
    ASSERT_FALSE(found) << model::to_string(mode);
    EXPECT_EQ(found.error().code(), Errc::EngineUnreachable);
  }
}

TEST_F(PeerDirectoryTest, TellsAMissingBootstrapServerFromAMissingWorker) {
  auto spec = worker(HandoffMode::Mooncake, test::closed_endpoint());
  spec.bootstrap_port = test::closed_endpoint().port;
  const auto found = ask(spec);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Errc::NoHandoff);
}

// ---- Mooncake ----

TEST_F(PeerDirectoryTest, AsksTheBootstrapServerForTheEngineOfARank) {
  const FakeEngine bootstrap(test::always(response(
      200,
      R"({"0":{"engine_id":"e0","worker_addr":{"0":{"0":"a"}}},"3":{"engine_id":"e3","worker_addr":{}}})")));
  auto spec = worker(HandoffMode::Mooncake, test::closed_endpoint());
  spec.bootstrap_port = bootstrap.endpoint().port;
  const PrefillPeer peer = find(spec, 3);
  EXPECT_EQ(peer.engine_id, "e3");
  EXPECT_EQ(peer.host, "127.0.0.1");
  EXPECT_EQ(peer.bootstrap_port, bootstrap.endpoint().port);
  EXPECT_EQ(find(spec, 3).engine_id, "e3");
  ASSERT_EQ(bootstrap.requests().size(), 1U);
  EXPECT_THAT(bootstrap.requests()[0].head, StartsWith("GET /query HTTP/1.1\r\n"));

  EXPECT_EQ(find(spec, 0).engine_id, "e0");
  directory.invalidate_if_stale({1}, 0, find(spec, 0));
  EXPECT_EQ(find(spec, 3).engine_id, "e3");
  EXPECT_EQ(bootstrap.requests().size(), 3U);
}

TEST_F(PeerDirectoryTest, KeepsTheBootstrapServersConnectionApartFromTheWorkers) {
  const FakeEngine bootstrap(test::always(response(200, R"({"0":{"engine_id":"e"}})")));
  const FakeEngine engine(test::always(response(200, "{}")));
  auto spec = worker(HandoffMode::Mooncake, engine.endpoint());
  spec.bootstrap_port = bootstrap.endpoint().port;
  EXPECT_EQ(find(spec).engine_id, "e");
  EXPECT_EQ(pool.take_idle({{1}, spec.endpoint}), nullptr);
}

TEST_F(PeerDirectoryTest, SaysWhatTheBootstrapServerLacks) {
  const std::pair<std::string, Errc> cases[] = {
      {response(500, "{}"), Errc::EngineFailed},
      {response(200, "[]"), Errc::EngineProtocol},
      {response(200, "no JSON"), Errc::EngineProtocol},
      {response(200, "{}"), Errc::NoHandoff},
      {response(200, R"({"1":{"engine_id":"e"}})"), Errc::NoHandoff},
      {response(200, R"({"0":7})"), Errc::NoHandoff},
      {response(200, R"({"0":{"engine_id":7}})"), Errc::NoHandoff},
      {response(200, R"({"0":{"engine_id":""}})"), Errc::NoHandoff},
  };
  std::uint64_t id = 10;
  for (const auto& [answer, code] : cases) {
    const FakeEngine bootstrap(test::always(answer));
    auto spec = worker(HandoffMode::Mooncake, test::closed_endpoint());
    spec.bootstrap_port = bootstrap.endpoint().port;
    const auto found = ask(spec, 0, ++id);
    ASSERT_FALSE(found) << answer;
    EXPECT_EQ(found.error().code(), code) << answer;
  }
}

// ---- TensorRT-LLM, generation first ----

TEST_F(PeerDirectoryTest, AsksTheContextWorkerForItsParamsOnce) {
  const FakeEngine engine(test::always(response(
      200,
      R"({"a":1,"disaggregated_params": {"ctx_info_endpoint":["x"], "big":18446744073709551616} })")));
  const auto spec = worker(HandoffMode::GenerationFirst, engine.endpoint());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(find(spec).server_info, R"({"ctx_info_endpoint":["x"], "big":18446744073709551616})");
  ASSERT_EQ(engine.requests().size(), 1U);
  EXPECT_THAT(engine.requests()[0].head, StartsWith("GET /server_info HTTP/1.1\r\n"));
  directory.invalidate_if_stale({1}, 0, find(spec));
  find(spec);
  EXPECT_EQ(engine.requests().size(), 2U);
}

TEST_F(PeerDirectoryTest, NamesTheParamsAContextWorkerDoesNotGive) {
  std::uint64_t id = 10;
  for (const char* body :
       {"{}", "no JSON", R"({"disaggregated_params":null})", R"({"disaggregated_params":[]})"}) {
    const FakeEngine engine(test::always(response(200, body)));
    const auto found = ask(worker(HandoffMode::GenerationFirst, engine.endpoint()), 0, ++id);
    ASSERT_FALSE(found) << body;
    EXPECT_EQ(found.error().code(), Errc::NoHandoff);
    EXPECT_THAT(found.error().message(), HasSubstr("disaggregated_params"));
  }
}

// ---- vLLM, NIXL push ----

TEST_F(PeerDirectoryTest, TakesAPushPeerFromTheConfiguration) {
  auto spec = worker(HandoffMode::NixlPush, test::closed_endpoint());
  spec.nixl = model::NixlPeer{.engine_id = "e",
                              .side_channel = {"10.0.0.9", 5700},
                              .tensor_parallel_size = 2,
                              .pipeline_parallel_size = 3};
  EXPECT_EQ(find(spec).nixl, *spec.nixl);
  spec.nixl->side_channel = {};
  EXPECT_EQ(find(spec).nixl.side_channel, (model::Endpoint{"127.0.0.1", 5600}));
}

TEST_F(PeerDirectoryTest, NamesEachRankOfAPushPeer) {
  auto spec = worker(HandoffMode::NixlPush, test::closed_endpoint());
  spec.nixl = model::NixlPeer{.engine_id = "e", .side_channel = {"h", 5700}};
  spec.data_parallel_size = 4;
  EXPECT_EQ(find(spec, 0).nixl.engine_id, "e_dp0");
  EXPECT_EQ(find(spec, 3).nixl.engine_id, "e_dp3");
  EXPECT_EQ(find(spec, 3).nixl.side_channel, (model::Endpoint{"h", 5703}));
  spec.nixl->side_channel.port = 65535;
  EXPECT_EQ(find(spec, 0).nixl.side_channel.port, 65535);
  EXPECT_FALSE(ask(spec, 1));
}

TEST_F(PeerDirectoryTest, LearnsAPushPeerFromAnAnswer) {
  const auto spec = worker(HandoffMode::NixlPush, test::closed_endpoint());
  const auto unknown = ask(spec);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Errc::NoHandoff);
  EXPECT_THAT(unknown.error().message(), HasSubstr("nixl.engine_id"));
  EXPECT_THAT(unknown.error().message(), HasSubstr("nixl.side_channel"));

  learn(1, 2,
        R"({"remote_engine_id":"e_dp2","remote_host":"10.0.0.9","remote_port":5602,"tp_size":8})");
  EXPECT_FALSE(ask(spec, 0));
  EXPECT_EQ(find(spec, 2).nixl, (model::NixlPeer{.engine_id = "e_dp2",
                                                 .side_channel = {"10.0.0.9", 5602},
                                                 .tensor_parallel_size = 8,
                                                 .pipeline_parallel_size = 1}));
  directory.invalidate_if_stale({1}, 2, find(spec, 2));
  EXPECT_FALSE(ask(spec, 2));
}

TEST_F(PeerDirectoryTest, KeepsWhatAWorkerSaidAfterWhatIsDoubted) {
  const auto spec = worker(HandoffMode::NixlPush, test::closed_endpoint());
  learn(1, 0, R"({"remote_engine_id":"old","remote_host":"h","remote_port":1})");
  const PrefillPeer told = find(spec);
  learn(1, 0, R"({"remote_engine_id":"new","remote_host":"h","remote_port":1})");
  directory.invalidate_if_stale({1}, 0, told);
  EXPECT_EQ(find(spec).nixl.engine_id, "new");

  std::atomic<int> started = 0;
  const FakeEngine engine([&started](test::FakePeer& peer) {
    while (peer.read_request()) {
      const std::string params = fmt::format(R"({{"started":{}}})", ++started);
      peer.write(response(200, fmt::format(R"({{"disaggregated_params":{}}})", params)));
    }
  });
  const auto context = worker(HandoffMode::GenerationFirst, engine.endpoint());
  const PrefillPeer first = find(context, 0, 2);
  directory.invalidate_if_stale({2}, 0, first);
  const PrefillPeer second = find(context, 0, 2);
  EXPECT_NE(first.server_info, second.server_info);
  learn(2, 0, R"({"remote_engine_id":"e","remote_host":"h","remote_port":1})");
  directory.invalidate_if_stale({2}, 0, first);  // another request that was told of it
  EXPECT_EQ(find(context, 0, 2).server_info, second.server_info);
  directory.invalidate_if_stale({2}, 0, second);
  EXPECT_NE(find(context, 0, 2).server_info, second.server_info)
      << "whatever it said of other modes";
}

TEST_F(PeerDirectoryTest, LearnsNothingFromHalfAnAnswer) {
  for (const char* params : {"", "null", "[]", "{}", R"({"remote_engine_id":"e"})",
                             R"({"remote_engine_id":"e","remote_host":"h","remote_port":0})",
                             R"({"remote_engine_id":"e","remote_host":"h","remote_port":65536})",
                             R"({"remote_engine_id":null,"remote_host":"h","remote_port":1})",
                             R"({"remote_engine_id":"e","remote_host":"","remote_port":1})"}) {
    EXPECT_FALSE(nixl_peer_in(params)) << params;
  }
}

}  // namespace
}  // namespace baton::engine
