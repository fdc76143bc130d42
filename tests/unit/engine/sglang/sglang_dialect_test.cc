// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/sglang/sglang_dialect.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

HandoffTicket bootstrap_ticket() {
  HandoffTicket made;
  made.peer.host = "10.0.0.5";
  made.peer.bootstrap_port = 8998;
  made.bootstrap_room = 9223372036854775807;  // the largest there is
  return made;
}

TEST(SglangLegs, GetTheSameRequestWithTheRoomBehindIt) {
  const ClientRequest request(
      Api::Chat, R"({"model":"m","stream":true,"stream_options":{"a":1},"max_tokens":9})");
  const BootstrapDialect dialect;
  EXPECT_EQ(
      dialect.decode_body(request.call, bootstrap_ticket(), {}, DecodePurpose::Answer).joined(),
      R"({"model":"m","stream":true,"stream_options":{"a":1},"max_tokens":9,)"
      R"("bootstrap_host":"10.0.0.5","bootstrap_port":8998,"bootstrap_room":9223372036854775807})");
  // The prefill's answer is read whole; what it may produce is the engine's matter.
  EXPECT_EQ(json(dialect.prefill_body(request.call, bootstrap_ticket())),
            json(R"({"model":"m","stream":false,"max_tokens":9,"bootstrap_host":"10.0.0.5",)"
                 R"("bootstrap_port":8998,"bootstrap_room":9223372036854775807})"));
}

TEST(SglangLegs, HaveTheNameThatBatonDrew) {
  const ClientRequest request(Api::Chat, R"({"model":"m","rid":"HEALTH_CHECK"})");
  ClientCall call = request.call;
  call.name = {.high = 1, .low = 0xabc};
  const std::string name = "00000000000000010000000000000abc";
  const BootstrapDialect dialect;
  EXPECT_EQ(json(dialect.prefill_body(call, bootstrap_ticket()))["rid"], name);
  EXPECT_EQ(json(dialect.decode_body(call, bootstrap_ticket(), {}, DecodePurpose::Answer))["rid"],
            name);
  EXPECT_EQ(json(plain_body(call, model::Engine::Sglang))["rid"], name);
  EXPECT_FALSE(json(plain_body(call, model::Engine::Vllm)).contains("rid"));
  EXPECT_FALSE(json(plain_body(call, model::Engine::Trtllm)).contains("rid"));
}

TEST(SglangLegs, SayNullForAPortNobodyKnows) {
  const ClientRequest request(Api::Chat, R"({"model":"m"})");
  HandoffTicket unknown = bootstrap_ticket();
  unknown.peer.bootstrap_port = std::nullopt;
  const auto body = json(BootstrapDialect().prefill_body(request.call, unknown));
  ASSERT_TRUE(body.contains("bootstrap_port"));
  EXPECT_TRUE(body["bootstrap_port"].is_null());
}

TEST(SglangLegs, OverruleHandoffFieldsOfTheClient) {
  const ClientRequest request(
      Api::Chat,
      R"({"bootstrap_host":"evil","bootstrap_port":1,"bootstrap_room":[1,2],)"
      R"("disagg_prefill_dp_rank":3,"kv_transfer_params":{},"model":"alias"})",
      "real");
  EXPECT_EQ(json(BootstrapDialect().decode_body(request.call, bootstrap_ticket(), {},
                                                DecodePurpose::Answer)),
            json(R"({"model":"real","bootstrap_host":"10.0.0.5","bootstrap_port":8998,)"
                 R"("bootstrap_room":9223372036854775807})"));
}

TEST(SglangHandoff, EchoesLogprobsOfThePromptFromThePrefill) {
  EXPECT_TRUE(BootstrapDialect().can_hand_off(
      ClientRequest(Api::Completions, R"({"echo":true,"logprobs":1})").call));
}

TEST(SglangPrefillAnswer, IsNeverTheClients) {
  for (const std::string reason : {"length", "stop", "tool_calls"}) {
    const auto outcome = BootstrapDialect().read_prefill_answer(
        R"({"choices":[{"finish_reason":")" + reason + R"("}],"usage":{"prompt_tokens":3}})");
    ASSERT_TRUE(outcome) << reason;
    EXPECT_NE(outcome->handoff, "");
    EXPECT_EQ(outcome->final_answer, std::nullopt);
    EXPECT_EQ(outcome->input_logprobs, "");
  }
}

TEST(SglangPrefillAnswer, HasTheLogprobsOfThePrompt) {
  const auto outcome = BootstrapDialect().read_prefill_answer(
      R"({"choices":[{"finish_reason":"length","input_token_logprobs":[[null,1],[-0.50,2]]}]})");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->input_logprobs, "[[null,1],[-0.50,2]]");
}

}  // namespace
}  // namespace baton::engine
