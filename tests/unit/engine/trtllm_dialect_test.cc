// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm_dialect.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

HandoffTicket ticket() {
  HandoffTicket made;
  made.disagg_request_id = 1099511627776;  // 2^40, the smallest the engine takes
  return made;
}

std::string answer(const std::string& choice, const std::string& rest = "") {
  return R"({"id":"c-1","choices":[)" + choice + "]" + rest + "}";
}

TEST(TrtllmContextLeg, IsUnstreamedAndSaysContextOnly) {
  const ClientRequest request(
      Api::Chat, R"({"model":"m","stream":true,"stream_options":{"include_usage":true},"n":1})");
  EXPECT_EQ(json(TrtllmDialect().prefill_body(request.call, ticket())),
            json(R"({"model":"m","n":1,"stream":false,"disaggregated_params":)"
                 R"({"request_type":"context_only","disagg_request_id":1099511627776,)"
                 R"("schedule_style":0}})"));
}

TEST(TrtllmContextLeg, CarriesNoFieldOfAnotherDialectBecauseTheEngineRefusesThem) {
  const ClientRequest request(
      Api::Completions,
      R"({"prompt":"p","kv_transfer_params":{},"bootstrap_host":"h","bootstrap_port":1,)"
      R"("bootstrap_room":2,"disagg_prefill_dp_rank":0,"disaggregated_params":{"x":1}})");
  EXPECT_EQ(json(TrtllmDialect().prefill_body(request.call, ticket())),
            json(R"({"prompt":"p","stream":false,"disaggregated_params":)"
                 R"({"request_type":"context_only","disagg_request_id":1099511627776,)"
                 R"("schedule_style":0}})"));
}

TEST(TrtllmContextAnswer, BecomesTheParamsOfTheGenerationLeg) {
  for (const std::string reason : {"length", "not_finished"}) {
    const auto outcome = TrtllmDialect().read_prefill_answer(answer(
        R"({"finish_reason":")" + reason +
            R"(","disaggregated_params":{"request_type":"context_only","ctx_request_id":)"
            R"(18446744073709551615,"first_gen_tokens":[7],"encoded_opaque_state":"QUJD/+=="}})",
        R"(,"prompt_token_ids":[1, 2,3],"usage":{"prompt_tokens":3})"));
    ASSERT_TRUE(outcome) << reason;
    EXPECT_EQ(outcome->final_answer, std::nullopt);
    EXPECT_EQ(json(outcome->handoff),
              json(R"({"request_type":"generation_only","ctx_request_id":18446744073709551615,)"
                   R"("first_gen_tokens":[7],"encoded_opaque_state":"QUJD/+==",)"
                   R"("ctx_usage":{"prompt_tokens":3}})"));
    EXPECT_EQ(outcome->prompt_token_ids, "[1, 2,3]");
  }
}

TEST(TrtllmContextAnswer, KeepsNumbersExact) {
  const auto outcome = TrtllmDialect().read_prefill_answer(
      answer(R"({"finish_reason":"length","disaggregated_params":)"
             R"({"a":340282366920938463463374607431768211456,"b":0.30000000000000004441}})"));
  ASSERT_TRUE(outcome);
  EXPECT_NE(outcome->handoff.find(
                R"("a":340282366920938463463374607431768211456,"b":0.30000000000000004441)"),
            std::string::npos)
      << outcome->handoff;
  EXPECT_EQ(outcome->prompt_token_ids, "");
}

TEST(TrtllmContextAnswer, OtherEndsAreTheAnswerWithoutWhatTheRouterAskedFor) {
  const auto outcome = TrtllmDialect().read_prefill_answer(
      answer(R"({"index":0,"message":{"content":"hi"},"finish_reason":"stop",)"
             R"("disaggregated_params":{"a":1}})",
             R"(,"prompt_token_ids":[1],"usage":{"prompt_tokens":1})"));
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(outcome->final_answer);
  EXPECT_EQ(json(*outcome->final_answer),
            json(answer(R"({"index":0,"message":{"content":"hi"},"finish_reason":"stop"})",
                        R"(,"usage":{"prompt_tokens":1})")));
}

TEST(TrtllmContextAnswer, ThatMakesNoSenseIsAProtocolError) {
  for (const std::string& text :
       {std::string("x"), std::string("{}"), answer(""), answer("1"), answer("{}"),
        answer(R"({"finish_reason":"length"})"),
        answer(R"({"finish_reason":"length","disaggregated_params":null})"),
        answer(R"({"finish_reason":"length","disaggregated_params":[1]})")}) {
    const auto outcome = TrtllmDialect().read_prefill_answer(text);
    ASSERT_FALSE(outcome) << text;
    EXPECT_EQ(outcome.error().code(), Errc::EngineProtocol) << text;
  }
}

TEST(TrtllmGenerationLeg, GetsTheParamsAndThePromptAsTokens) {
  const PrefillOutcome outcome{.final_answer = {},
                               .handoff = R"({"request_type":"generation_only"})",
                               .prompt_token_ids = "[1,2]"};
  const TrtllmDialect dialect;
  const ClientRequest chat(Api::Chat, R"({"messages":[],"stream":true})");
  EXPECT_EQ(json(dialect.decode_body(chat.call, ticket(), outcome, DecodePurpose::Answer)),
            json(R"({"messages":[],"stream":true,"prompt_token_ids":[1,2],)"
                 R"("disaggregated_params":{"request_type":"generation_only"}})"));
  const ClientRequest completions(Api::Completions, R"({"prompt":"text","stream":true})");
  EXPECT_EQ(json(dialect.decode_body(completions.call, ticket(), outcome, DecodePurpose::Answer)),
            json(R"({"prompt":[1,2],"stream":true,)"
                 R"("disaggregated_params":{"request_type":"generation_only"}})"));
}

TEST(TrtllmGenerationLeg, KeepsTheClientsPromptWhereNoTokensCame) {
  const PrefillOutcome outcome{.final_answer = {}, .handoff = "{}", .prompt_token_ids = {}};
  const ClientRequest request(Api::Completions, R"({"prompt":"text"})");
  EXPECT_EQ(
      json(TrtllmDialect().decode_body(request.call, ticket(), outcome, DecodePurpose::Answer)),
      json(R"({"prompt":"text","disaggregated_params":{}})"));
}

TEST(TrtllmGenerationLeg, ThatOnlyReleasesTheBlocksAsksForOneToken) {
  const PrefillOutcome outcome{.final_answer = {}, .handoff = "{}", .prompt_token_ids = {}};
  const ClientRequest request(Api::Completions,
                              R"({"prompt":"t","stream":true,"max_tokens":50,"min_tokens":7})");
  EXPECT_EQ(
      json(TrtllmDialect().decode_body(request.call, ticket(), outcome, DecodePurpose::Release)),
      json(R"({"prompt":"t","stream":false,"max_tokens":1,"disaggregated_params":{}})"));
}

}  // namespace
}  // namespace baton::engine
