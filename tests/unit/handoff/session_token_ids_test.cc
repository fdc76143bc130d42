// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
//
// Which legs carry the prompt as token ids.
#include "handoff/session.h"
#include "unit/handoff/handoff_fixture.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace baton::handoff {
namespace {

using engine::Api;
using model::SendTokenIds;
using model::Version;
using test::FakeEngine;
using test::response;

constexpr const char* kContext =
    R"({"choices":[{"finish_reason":"length","disaggregated_params":{"ctx_request_id":1}}]})";

struct RunWithTokenIds : HandoffFixture {
  HandoffRequest job_with_ids(Api api, const char* body) {
    HandoffRequest wanted = job(api, body);
    wanted.token_ids = std::make_shared<const std::string>("[1,2,3]");
    wanted.send_token_ids = policy;
    return wanted;
  }
  std::string ask_with_ids(Api api, const char* body) {
    begin(job_with_ids(api, body));
    wait_for_answer();
    return *answer ? read_rest() : "failed: " + answer->error().message();
  }
  static nlohmann::json chat_ids(const FakeEngine& engine) {
    return json(engine.requests().back().body)
        .value("/kv_transfer_params/prompt_token_ids"_json_pointer, nlohmann::json());
  }
  SendTokenIds policy = SendTokenIds::Auto;
  const nlohmann::json ids = json("[1,2,3]");
};

TEST_F(RunWithTokenIds, EachLegIsAskedByWhatItsOwnWorkerTakes) {
  const FakeEngine prefill(test::always(response(200, kKept)));
  const FakeEngine decode(test::always(response(200, "decoded")));
  serve(Engine::Vllm, {{Role::Prefill, prefill.endpoint()}, {Role::Decode, decode.endpoint()}});
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "decoded");
  EXPECT_EQ(chat_ids(prefill), nullptr) << "nobody knows its release";
  EXPECT_EQ(chat_ids(decode), nullptr);
  worker(prefill.endpoint()).runs(Version{0, 27, 0});
  worker(decode.endpoint()).runs(Version{0, 26, 0});
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "decoded");
  EXPECT_EQ(chat_ids(prefill), ids);
  EXPECT_EQ(chat_ids(decode), nullptr);
  worker(decode.endpoint()).runs(Version{0, 28, 0});
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "decoded");
  EXPECT_EQ(chat_ids(decode), ids);
  EXPECT_EQ(json(decode.requests().back().body)["kv_transfer_params"]["remote_port"], 5600);
}

TEST_F(RunWithTokenIds, ThePolicyComesFirst) {
  const FakeEngine alone(test::always(response(200, "answered")));
  serve(Engine::Vllm, {{Role::Aggregated, alone.endpoint()}});
  policy = SendTokenIds::Always;
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "answered");
  EXPECT_EQ(chat_ids(alone), ids);
  policy = SendTokenIds::Never;
  worker(alone.endpoint()).runs(Version{9, 0, 0});
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "answered");
  EXPECT_EQ(alone.requests().back().body, kChat);
  const char* const text = R"({"model":"m","prompt":"p"})";
  EXPECT_EQ(ask_with_ids(Api::Completions, text), "answered");
  EXPECT_EQ(alone.requests().back().body, text);
}

TEST_F(RunWithTokenIds, AGenerationWorkerGetsThemWhateverThePolicy) {
  const FakeEngine context(test::always(response(200, kContext)));
  const FakeEngine generation(test::always(response(200, "generated")));
  serve(Engine::Trtllm,
        {{Role::Prefill, context.endpoint()}, {Role::Decode, generation.endpoint()}});
  policy = SendTokenIds::Never;
  EXPECT_EQ(ask_with_ids(Api::Chat, kChat), "generated");
  EXPECT_FALSE(json(context.requests().back().body).contains("prompt_token_ids"));
  EXPECT_EQ(json(generation.requests().back().body)["prompt_token_ids"], ids);
}

TEST_F(RunWithTokenIds, TheyAreLetGoOfWithTheBody) {
  const FakeEngine alone(test::always(response(200, "answered")));
  serve(Engine::Vllm, {{Role::Aggregated, alone.endpoint()}});
  for (const bool continuable : {false, true}) {
    HandoffRequest wanted = job_with_ids(Api::Completions, R"({"model":"m","prompt":"p"})");
    wanted.continuable = continuable;
    const std::weak_ptr<const std::string> held = wanted.token_ids;
    begin(std::move(wanted));
    wait_for_answer();
    ASSERT_TRUE(*answer);
    EXPECT_FALSE(held.expired());
    (*answer)->first_token();
    EXPECT_EQ(held.expired(), !continuable);
    EXPECT_EQ(read_rest(), "answered");
  }
}

}  // namespace
}  // namespace baton::handoff
