// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm/trtllm_dialect.h"

#include "unit/engine/client_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::engine {
namespace {

HandoffTicket context_ticket() {
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
  EXPECT_EQ(json(ContextFirstDialect().prefill_body(request.call, context_ticket())),
            json(R"({"model":"m","n":1,"stream":false,"disaggregated_params":)"
                 R"({"request_type":"context_only","disagg_request_id":1099511627776,)"
                 R"("schedule_style":0}})"));
}

TEST(TrtllmContextLeg, CarriesNoFieldOfAnotherDialectBecauseTheEngineRefusesThem) {
  const ClientRequest request(
      Api::Completions,
      R"({"prompt":"p","kv_transfer_params":{},"bootstrap_host":"h","bootstrap_port":1,)"
      R"("bootstrap_room":2,"disagg_prefill_dp_rank":0,"disaggregated_params":{"x":1}})");
  EXPECT_EQ(json(ContextFirstDialect().prefill_body(request.call, context_ticket())),
            json(R"({"prompt":"p","stream":false,"disaggregated_params":)"
                 R"({"request_type":"context_only","disagg_request_id":1099511627776,)"
                 R"("schedule_style":0}})"));
}

TEST(TrtllmContextAnswer, BecomesTheParamsOfTheGenerationLeg) {
  for (const std::string reason : {"length", "not_finished"}) {
    const auto outcome = ContextFirstDialect().read_prefill_answer(answer(
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
  const auto outcome = ContextFirstDialect().read_prefill_answer(
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
  const auto outcome = ContextFirstDialect().read_prefill_answer(
      answer(R"({"index":0,"message":{"content":"hi"},"finish_reason":"stop",)"
             R"("disaggregated_params":{"a":1}})",
             R"(,"prompt_token_ids":[1],"usage":{"prompt_tokens":1})"));
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(outcome->final_answer);
  EXPECT_EQ(json(*outcome->final_answer),
            json(answer(R"({"index":0,"message":{"content":"hi"},"finish_reason":"stop"})",
                        R"(,"usage":{"prompt_tokens":1})")));
}

TEST(TrtllmContextAnswer, WithoutAHandoffNamesWhatIsMissing) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"finish_reason":"length"})", "disaggregated_params"},
      {R"({"finish_reason":"length","disaggregated_params":null})", "disaggregated_params"},
      {R"({"finish_reason":"length","disaggregated_params":[1]})", "disaggregated_params"},
      {R"({"finish_reason":"not_finished","disaggregated_params":{"ctx_request_id":null}})",
       "ctx_request_id"},
      {R"({"finish_reason":"length","disaggregated_params":{"request_type":"context_only"}})",
       "ctx_request_id"},
  };
  for (const auto& [choice, field] : cases) {
    const auto outcome = ContextFirstDialect().read_prefill_answer(answer(choice));
    ASSERT_FALSE(outcome) << choice;
    EXPECT_EQ(outcome.error().code(), Errc::NoHandoff) << choice;
    EXPECT_THAT(outcome.error().message(), testing::HasSubstr(field));
  }
}

TEST(TrtllmGenerationLeg, GetsTheParamsAndThePromptAsTokens) {
  PrefillOutcome outcome;
  outcome.handoff = R"({"request_type":"generation_only"})";
  outcome.prompt_token_ids = "[1,2]";
  const ContextFirstDialect dialect;
  const ClientRequest chat(Api::Chat, R"({"messages":[],"stream":true})");
  EXPECT_EQ(json(dialect.decode_body(chat.call, context_ticket(), outcome, DecodePurpose::Answer)),
            json(R"({"messages":[],"stream":true,"prompt_token_ids":[1,2],)"
                 R"("disaggregated_params":{"request_type":"generation_only"}})"));
  const ClientRequest completions(Api::Completions, R"({"prompt":"text","stream":true})");
  EXPECT_EQ(
      json(dialect.decode_body(completions.call, context_ticket(), outcome, DecodePurpose::Answer)),
      json(R"({"prompt":[1,2],"stream":true,)"
           R"("disaggregated_params":{"request_type":"generation_only"}})"));
}

TEST(TrtllmGenerationLeg, KeepsTheClientsPromptWhereNoTokensCame) {
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  const ClientRequest request(Api::Completions, R"({"prompt":"text"})");
  EXPECT_EQ(json(ContextFirstDialect().decode_body(request.call, context_ticket(), outcome,
                                                   DecodePurpose::Answer)),
            json(R"({"prompt":"text","disaggregated_params":{}})"));
}

TEST(TrtllmGenerationLeg, ThatOnlyReleasesTheBlocksAsksForOneToken) {
  PrefillOutcome outcome;
  outcome.handoff = "{}";
  const ClientRequest request(Api::Completions,
                              R"({"prompt":"t","stream":true,"max_tokens":50,"min_tokens":7})");
  EXPECT_EQ(json(ContextFirstDialect().decode_body(request.call, context_ticket(), outcome,
                                                   DecodePurpose::Release)),
            json(R"({"prompt":"t","stream":false,"max_tokens":1,"disaggregated_params":{}})"));
}

// Regression: max_tokens is another name of max_completion_tokens to TensorRT-LLM, and a second
// value for it is refused, so that the blocks stayed where they were.
TEST(TrtllmGenerationLeg, ThatOnlyReleasesNamesTheLimitOnce) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"max_completion_tokens":9})", R"({"max_completion_tokens":1,"stream":false})"},
      {R"({"max_completion_tokens":null})", R"({"max_completion_tokens":1,"stream":false})"},
      {R"({"max_tokens":9})", R"({"max_tokens":1,"stream":false})"},
      {"{}", R"({"max_tokens":1,"stream":false})"},
      {R"({"max_tokens":9,"max_completion_tokens":8})",
       R"({"max_tokens":1,"max_completion_tokens":1,"stream":false})"},
  };
  for (const auto& [body, expected] : cases) {
    const ClientRequest request(Api::Chat, body);
    EXPECT_EQ(json(ContextFirstDialect().decode_body(request.call, {}, {}, DecodePurpose::Release)),
              json(expected))
        << body;
  }
}

TEST(TrtllmGenerationLeg, SignsTheParamsItSends) {
  const ClientRequest request(Api::Chat, R"({"model":"m"})");
  HandoffTicket ticket;
  ticket.disagg_request_id = 7;
  ticket.peer.server_info = R"({"ctx_info_endpoint":["tcp://a:1","tcp://b:2"]})";
  PrefillOutcome outcome;
  outcome.handoff = R"({"request_type":"generation_only","encoded_opaque_state":"AA=="})";
  const ContextFirstDialect context_first;
  const GenerationFirstDialect generation_first;
  for (const Dialect* dialect : {static_cast<const Dialect*>(&context_first),
                                 static_cast<const Dialect*>(&generation_first)}) {
    const auto body =
        json(dialect->decode_body(request.call, ticket, outcome, DecodePurpose::Answer));
    EXPECT_EQ(json(dialect->signed_params(ticket, outcome)), body["disaggregated_params"]);
  }
  EXPECT_EQ(dialect_of(model::HandoffMode::NixlPull).signed_params(ticket, outcome), "");
}

TEST(TrtllmGenerationFirst, TellsBothWorkersOfEachOther) {
  const ClientRequest request(Api::Completions, R"({"prompt":"t","stream":true,"max_tokens":5})");
  HandoffTicket both = context_ticket();
  both.peer.server_info =
      R"({"ctx_info_endpoint":["tcp://10.0.0.5:7","tcp://x"],"ctx_dp_rank":null,"request_type":"x",)"
      R"("big":18446744073709551616})";
  const GenerationFirstDialect dialect;
  EXPECT_EQ(json(dialect.prefill_body(request.call, both)),
            json(R"({"prompt":"t","stream":false,"max_tokens":5,"disaggregated_params":
                     {"request_type":"context_only","disagg_request_id":1099511627776,"schedule_style":1}})"));
  const std::string body =
      dialect.decode_body(request.call, both, {}, DecodePurpose::Answer).joined();
  EXPECT_EQ(json(body), json(R"({"prompt":"t","stream":true,"max_tokens":5,"disaggregated_params":
                     {"ctx_info_endpoint":"tcp://10.0.0.5:7","ctx_dp_rank":null,"big":18446744073709551616,
                      "request_type":"generation_only","ctx_request_id":1099511627776,
                      "disagg_request_id":1099511627776,"schedule_style":1}})"));
  EXPECT_THAT(body, testing::HasSubstr(R"("big":18446744073709551616)"));
}

TEST(TrtllmGenerationFirst, TakesOneEndpointAsItIsAndAsksForNothingThatIsNotKnown) {
  const ClientRequest request(Api::Chat, "{}");
  for (const auto& [info, endpoint] :
       {std::pair<const char*, const char*>{R"({"ctx_info_endpoint":"e"})", R"("e")"},
        {R"({"ctx_info_endpoint":null})", "null"},
        {R"({"ctx_info_endpoint":[]})", "[]"},
        {"", "null"},
        {"no JSON", "null"}}) {
    HandoffTicket one = context_ticket();
    one.peer.server_info = info;
    const auto params = json(GenerationFirstDialect().decode_body(
        request.call, one, {}, DecodePurpose::Answer))["disaggregated_params"];
    EXPECT_EQ(params.value("ctx_info_endpoint", nlohmann::json()), json(endpoint)) << info;
    EXPECT_EQ(params["request_type"], "generation_only");
  }
}

TEST(TrtllmGenerationFirst, NeedsNothingOfTheContextAnswerButThatItIsOne) {
  const auto handed =
      GenerationFirstDialect().read_prefill_answer(answer(R"({"finish_reason":"not_finished"})"));
  ASSERT_TRUE(handed);
  EXPECT_EQ(handed->final_answer, std::nullopt);
  EXPECT_NE(handed->handoff, "");
  const auto ended = GenerationFirstDialect().read_prefill_answer(answer(
      R"({"finish_reason":"stop","disaggregated_params":{"a":1}})", R"(,"prompt_token_ids":[1])"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(json(ended->final_answer.value()), json(answer(R"({"finish_reason":"stop"})")));
}

}  // namespace
}  // namespace baton::engine
