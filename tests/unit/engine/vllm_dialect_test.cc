// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/vllm_dialect.h"

#include "unit/engine/client_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using testing::HasSubstr;

// What a prefill worker is told, by the engine's documentation of NixlConnector.
constexpr const char* kAskToKeep =
    R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
    R"("remote_block_ids":null,"remote_host":null,"remote_port":null})";

nlohmann::json prefill(const std::string& body) {
  const ClientRequest request(Api::Chat, body);
  return json(VllmDialect().prefill_body(request.call, {}));
}

TEST(VllmPrefillLeg, AsksForOneTokenUnstreamedAndForTheBlocksToBeKept) {
  EXPECT_EQ(prefill(R"({"model":"m","messages":[1],"stream":true,"stream_options":{"x":1},)"
                    R"("max_tokens":500,"max_completion_tokens":600,"min_tokens":20,"n":4})"),
            json(std::string(R"({"model":"m","messages":[1],"stream":false,"max_tokens":1,)") +
                 R"("max_completion_tokens":1,"n":1,"kv_transfer_params":)" + kAskToKeep + "}"));
}

TEST(VllmPrefillLeg, AddsNoFieldTheClientDidNotSendButTheNeededOnes) {
  EXPECT_EQ(prefill(R"({"model":"m"})"),
            json(std::string(R"({"model":"m","stream":false,"max_tokens":1,)") +
                 R"("kv_transfer_params":)" + kAskToKeep + "}"));
}

TEST(VllmPrefillLeg, LeavesEveryOtherByteOfTheClientAlone) {
  const ClientRequest request(Api::Chat,
                              R"({"seed":98765432109876543210, "temperature":1.0E-1,"model":"m"})");
  EXPECT_THAT(VllmDialect().prefill_body(request.call, {}).joined(),
              HasSubstr(R"({"seed":98765432109876543210, "temperature":1.0E-1,"model":"m")"));
}

TEST(VllmPrefillLeg, OverrulesHandoffFieldsOfTheClient) {
  const auto body = prefill(
      R"({"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"evil"},"bootstrap_room":1})");
  EXPECT_EQ(body["kv_transfer_params"], json(kAskToKeep));
  EXPECT_FALSE(body.contains("bootstrap_room"));
}

TEST(VllmPrefillLeg, NamesTheModelAsTheWorkersDo) {
  const ClientRequest request(Api::Chat, R"({"model":"alias"})", "real");
  EXPECT_EQ(json(VllmDialect().prefill_body(request.call, {}))["model"], "real");
}

TEST(VllmPrefillAnswer, HandsTheParamsOnExactlyAsTheyWereWritten) {
  const std::string params =
      R"({"do_remote_prefill":true, "remote_block_ids":[[1,2],[18446744073709551616]],)"
      R"("remote_blocks_expiry_time":1723900000.1234567890123,"tp_size":1.0,"x":1e400,"n":null})";
  const auto outcome = VllmDialect().read_prefill_answer(
      R"({"id":"1","choices":[{"finish_reason":"length"}],"kv_transfer_params": )" + params + " }");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->handoff, params);
  EXPECT_EQ(outcome->final_answer, std::nullopt);
}

TEST(VllmPrefillAnswer, WithoutParamsLeavesThePromptToTheDecodeWorker) {
  for (const char* params : {"", R"(,"kv_transfer_params":null)"}) {
    const auto outcome = VllmDialect().read_prefill_answer(
        std::string(R"({"choices":[{"finish_reason":"length"}])") + params + "}");
    ASSERT_TRUE(outcome) << params;
    EXPECT_EQ(outcome->handoff, "");
    EXPECT_EQ(outcome->final_answer, std::nullopt);
  }
}

TEST(VllmPrefillAnswer, OtherEndsThanLengthAreTheAnswer) {
  for (const std::string reason : {"stop", "tool_calls", "content_filter", "repetition"}) {
    const std::string choices =
        R"("choices":[{"index":0,"message":{"content":"x"},"finish_reason":")" + reason + "\"}]";
    const auto outcome = VllmDialect().read_prefill_answer(
        R"({"id":"1",)" + choices + R"(,"kv_transfer_params":{"remote_host":"h"},"usage":{}})");
    ASSERT_TRUE(outcome) << reason;
    ASSERT_TRUE(outcome->final_answer) << reason;
    EXPECT_EQ(json(*outcome->final_answer), json(R"({"id":"1",)" + choices + R"(,"usage":{}})"));
  }
}

TEST(VllmPrefillAnswer, ThatWasGivenUpLeavesAllToTheDecodeWorker) {
  const auto outcome = VllmDialect().read_prefill_answer(
      R"({"choices":[{"index":0,"finish_reason":"abort"}],"kv_transfer_params":null})");
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->final_answer);
  EXPECT_EQ(outcome->handoff, "");
}

TEST(VllmPrefillAnswer, ThatMakesNoSenseIsAProtocolError) {
  for (const char* answer :
       {"", "no JSON", "[]", "{}", R"({"choices":[]})", R"({"choices":{}})", R"({"choices":[1]})",
        R"({"choices":[{}]})", R"({"choices":[{"finish_reason":null}]})",
        R"({"choices":[{"finish_reason":3}]})", R"({"choices":[{"finish_reason":"length"}]}x)"}) {
    const auto outcome = VllmDialect().read_prefill_answer(answer);
    ASSERT_FALSE(outcome) << answer;
    EXPECT_EQ(outcome.error().code(), Errc::EngineProtocol) << answer;
  }
}

TEST(VllmDecodeLeg, IsTheClientsBodyWithTheParamsBehindIt) {
  const ClientRequest request(Api::Chat, R"({"model":"m","stream":true,"max_tokens":500})");
  const PrefillOutcome outcome{.final_answer = {},
                               .handoff = R"({"remote_port":5600, "big":18446744073709551616})",
                               .prompt_token_ids = {}};
  EXPECT_EQ(VllmDialect().decode_body(request.call, {}, outcome, DecodePurpose::Answer).joined(),
            R"({"model":"m","stream":true,"max_tokens":500,)"
            R"("kv_transfer_params":{"remote_port":5600, "big":18446744073709551616}})");
}

TEST(VllmDecodeLeg, IsThePlainBodyWhereNothingWasKept) {
  const ClientRequest request(Api::Chat, R"({"model":"m","kv_transfer_params":{"a":1}})");
  EXPECT_EQ(json(VllmDialect().decode_body(request.call, {}, {}, DecodePurpose::Answer)),
            json(R"({"model":"m"})"));
}

TEST(VllmDecodeLeg, ThatOnlyReleasesTheBlocksAsksForOneToken) {
  const ClientRequest request(
      Api::Chat, R"({"model":"m","stream":true,"stream_options":{},"max_tokens":500})");
  const PrefillOutcome outcome{.final_answer = {}, .handoff = R"({"p":1})", .prompt_token_ids = {}};
  EXPECT_EQ(json(VllmDialect().decode_body(request.call, {}, outcome, DecodePurpose::Release)),
            json(R"({"model":"m","stream":false,"max_tokens":1,"kv_transfer_params":{"p":1}})"));
}

}  // namespace
}  // namespace baton::engine
