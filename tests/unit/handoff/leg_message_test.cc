// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Where a session's long answers are read, and bodies made of them.
#include "handoff/session.h"
#include "unit/handoff/handoff_fixture.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::handoff {
namespace {

using engine::Api;
using test::FakeEngine;
using test::response;

// Longer than what is gone through on the I/O thread.
std::string long_text() { return std::string(2 * net::CpuPool::kInPlace, 'x'); }

struct RunMessages : HandoffFixture {
  FakeEngine prefill{test::always(
      response(200, R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":{"blocks":")" +
                        long_text() + R"("}})"))};
  FakeEngine decode{test::always(response(200, "decoded"))};

  void serve_both() {
    serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  }
  std::string handed_over() const {
    return json(decode.requests().back().body)
        .value("/kv_transfer_params/blocks"_json_pointer, std::string());
  }
};

TEST_F(RunMessages, ALongPrefillAnswerIsReadByTheCpuThreads) {
  serve_both();
  hold_cpu();
  begin(Api::Chat, kChat);
  wait_for_cpu_work();
  EXPECT_EQ(decode.requests().size(), 0U);
  release_cpu();
  wait_for_answer();
  ASSERT_TRUE(*answer) << (*answer).error().message();
  EXPECT_EQ(read_rest(), "decoded");
  EXPECT_EQ(handed_over(), long_text());
}

TEST_F(RunMessages, BlocksAreReleasedWhereTheClientLeavesWhileTheAnswerIsRead) {
  serve_both();
  hold_cpu();
  begin(Api::Chat, kChat);
  wait_for_cpu_work();
  cancellation.request(client_gone());
  release_cpu();
  wait_for_answer();
  EXPECT_EQ(failure(), Errc::ClientGone);
  answer.reset();
  wait_for_legs();
  ASSERT_EQ(decode.requests().size(), 1U);
  EXPECT_EQ(handed_over(), long_text());
}

TEST_F(RunMessages, ALongRefusalIsReadByTheCpuThreads) {
  const std::string refusal = R"({"error":{"message":")" + long_text() + R"("}})";
  const FakeEngine alone(test::always(response(400, refusal)));
  serve(Engine::Vllm, {{Role::Aggregated, alone.endpoint()}});
  hold_cpu();
  begin(Api::Chat, kChat);
  wait_for_cpu_work();
  EXPECT_FALSE(answer);
  release_cpu();
  wait_for_answer();
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineRejected);
  ASSERT_TRUE((*answer).error().reply());
  EXPECT_EQ((*answer).error().reply()->body, refusal);
}

TEST_F(RunMessages, OfARefusalLongerThanAMebibyteOnlyTheStatusCounts) {
  const FakeEngine alone(test::always(response(422, std::string(1024 * 1024 + 1, 'x'))));
  serve(Engine::Vllm, {{Role::Aggregated, alone.endpoint()}});
  ask(Api::Chat, kChat);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(failure(), Errc::EngineRejected);
  EXPECT_EQ((*answer).error().http_status(), 422);
  EXPECT_FALSE((*answer).error().reply());
  EXPECT_LT((*answer).error().message().size(), 200U);
}

}  // namespace
}  // namespace baton::handoff
