// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/vllm/vllm_dialect.h"

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
  return json(NixlPullDialect().prefill_body(request.call, {}));
}

TEST(NixlPullPrefillLeg, AsksForOneTokenUnstreamedAndForTheBlocksToBeKept) {
  EXPECT_EQ(prefill(R"({"model":"m","messages":[1],"stream":true,"stream_options":{"x":1},)"
                    R"("max_tokens":500,"max_completion_tokens":600,"min_tokens":20,"n":4})"),
            json(std::string(R"({"model":"m","messages":[1],"stream":false,"max_tokens":1,)") +
                 R"("max_completion_tokens":1,"n":1,"kv_transfer_params":)" + kAskToKeep + "}"));
}

TEST(NixlPullPrefillLeg, AddsNoFieldTheClientDidNotSendButTheNeededOnes) {
  EXPECT_EQ(prefill(R"({"model":"m"})"),
            json(std::string(R"({"model":"m","stream":false,"max_tokens":1,)") +
                 R"("kv_transfer_params":)" + kAskToKeep + "}"));
}

TEST(NixlPullPrefillLeg, LeavesEveryOtherByteOfTheClientAlone) {
  const ClientRequest request(Api::Chat,
                              R"({"seed":98765432109876543210, "temperature":1.0E-1,"model":"m"})");
  EXPECT_THAT(NixlPullDialect().prefill_body(request.call, {}).joined(),
              HasSubstr(R"({"seed":98765432109876543210, "temperature":1.0E-1,"model":"m")"));
}

// vLLM refuses them; its decode worker would do so without telling the prefill worker.
TEST(NixlPullPrefillLeg, HasStreamOptionsThatBelongToNoStream) {
  EXPECT_EQ(prefill(R"({"stream_options":{"x":1}})")["stream_options"], json(R"({"x":1})"));
  EXPECT_FALSE(prefill(R"({"stream":true,"stream_options":{"x":1}})").contains("stream_options"));
}

TEST(NixlPullPrefillLeg, OverrulesHandoffFieldsOfTheClient) {
  const auto body = prefill(
      R"({"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"evil"},"bootstrap_room":1})");
  EXPECT_EQ(body["kv_transfer_params"], json(kAskToKeep));
  EXPECT_FALSE(body.contains("bootstrap_room"));
}

TEST(NixlPullPrefillLeg, NamesTheModelAsTheWorkersDo) {
  const ClientRequest request(Api::Chat, R"({"model":"alias"})", "real");
  EXPECT_EQ(json(NixlPullDialect().prefill_body(request.call, {}))["model"], "real");
}

TEST(NixlPullPrefillAnswer, HandsTheParamsOnExactlyAsTheyWereWritten) {
  const std::string params =
      R"({"do_remote_prefill":true, "remote_block_ids":[[1,2],[18446744073709551616]],)"
      R"("remote_blocks_expiry_time":1723900000.1234567890123,"tp_size":1.0,"x":1e400,"n":null})";
  const auto outcome = NixlPullDialect().read_prefill_answer(
      R"({"id":"1","choices":[{"finish_reason":"length"}],"kv_transfer_params": )" + params + " }");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->handoff, params);
  EXPECT_EQ(outcome->final_answer, std::nullopt);
}

TEST(NixlPullPrefillAnswer, WithoutParamsLeavesThePromptToTheDecodeWorker) {
  for (const char* params : {"", R"(,"kv_transfer_params":null)"}) {
    const auto outcome = NixlPullDialect().read_prefill_answer(
        std::string(R"({"choices":[{"finish_reason":"length"}])") + params + "}");
    ASSERT_TRUE(outcome) << params;
    EXPECT_EQ(outcome->handoff, "");
    EXPECT_TRUE(outcome->unkept) << "the worker has no connector";
    EXPECT_EQ(outcome->final_answer, std::nullopt);
  }
  const auto aborted =
      NixlPullDialect().read_prefill_answer(R"({"choices":[{"finish_reason":"abort"}]})");
  ASSERT_TRUE(aborted);
  EXPECT_FALSE(aborted->unkept) << "nothing was computed";
}

TEST(NixlPullPrefillAnswer, OtherEndsThanLengthAreTheAnswer) {
  for (const std::string reason : {"stop", "tool_calls", "content_filter", "repetition"}) {
    const std::string choices =
        R"("choices":[{"index":0,"message":{"content":"x"},"finish_reason":")" + reason + "\"}]";
    const auto outcome = NixlPullDialect().read_prefill_answer(
        R"({"id":"1",)" + choices + R"(,"kv_transfer_params":{"remote_host":"h"},"usage":{}})");
    ASSERT_TRUE(outcome) << reason;
    ASSERT_TRUE(outcome->final_answer) << reason;
    EXPECT_EQ(json(*outcome->final_answer), json(R"({"id":"1",)" + choices + R"(,"usage":{}})"));
    EXPECT_EQ(outcome->handoff, R"({"remote_host":"h"})") << "which is held all the same";
  }
}

TEST(NixlPullPrefillAnswer, WithParamsIsHandedOverWhateverReasonNobodyKnows) {
  for (const Dialect* dialect :
       {&dialect_of(model::HandoffMode::NixlPull), &dialect_of(model::HandoffMode::NixlPush)}) {
    const auto outcome = dialect->read_prefill_answer(
        R"({"choices":[{"finish_reason":"remote_decode"}],"kv_transfer_params":{"a":1}})");
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->handoff, R"({"a":1})");
    EXPECT_EQ(outcome->final_answer, std::nullopt);
    const auto unknown =
        dialect->read_prefill_answer(R"({"choices":[{"finish_reason":"remote_decode"}]})");
    ASSERT_FALSE(unknown) << "an unknown reason is no success";
    EXPECT_EQ(unknown.error().code(), Errc::EngineProtocol);
  }
}

TEST(NixlPullBlocks, AreFreedByADecodeWorkerThatHadTheRequest) {
  const NixlPullDialect pull;
  using How = DecodeEnd::How;
  EXPECT_FALSE(pull.frees_blocks({.how = How::Unsent, .error_type = "ServiceUnavailableError"}));
  EXPECT_TRUE(pull.frees_blocks({.how = How::Closed}));
  EXPECT_FALSE(pull.frees_blocks({.how = How::Broken}));
  EXPECT_TRUE(pull.frees_blocks({.how = How::Answered})) << "they were fetched before it answered";
  EXPECT_FALSE(pull.frees_blocks({.how = How::Refused, .error_type = "Bad Request"}));
  for (const How how : {How::Refused, How::Broken}) {
    DecodeEnd end{.how = how, .error_type = "BadRequestError"};
    EXPECT_TRUE(pull.frees_blocks(end));
    end.version = {.major = 0, .minor = 32, .patch = 0};
    EXPECT_TRUE(pull.frees_blocks(end));
    end.version = {.major = 0, .minor = 20, .patch = 2};
    EXPECT_FALSE(pull.frees_blocks(end)) << "which did not tell";
  }
}

TEST(NixlPushBlocks, AreFreedUnlessTheDecodeWorkerSurelyRegisteredNothing) {
  const NixlPushDialect push;
  using How = DecodeEnd::How;
  EXPECT_FALSE(push.frees_blocks({.how = How::Unsent}));
  EXPECT_FALSE(push.frees_blocks({.how = How::Refused, .error_type = "BadRequestError"}));
  EXPECT_TRUE(push.frees_blocks({.how = How::Closed}));
  EXPECT_TRUE(push.frees_blocks({.how = How::Broken}));
  EXPECT_FALSE(push.frees_blocks({.how = How::Broken, .error_type = "InternalServerError"}));
}

TEST(NixlPullPrefillAnswer, WithParamsThatAreNoObjectIsAProtocolError) {
  for (const char* params : {"7", "[]", "\"x\"", "true"}) {
    const auto outcome = NixlPullDialect().read_prefill_answer(
        std::string(R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":)") + params +
        "}");
    ASSERT_FALSE(outcome) << params;
    EXPECT_EQ(outcome.error().code(), Errc::EngineProtocol);
  }
}

TEST(NixlPullDecodeLeg, IsTheClientsBodyWithTheParamsBehindIt) {
  const ClientRequest request(Api::Chat, R"({"model":"m","stream":true,"max_tokens":500})");
  PrefillOutcome outcome;
  outcome.handoff = R"({"remote_port":5600, "big":18446744073709551616})";
  EXPECT_EQ(
      NixlPullDialect().decode_body(request.call, {}, outcome, DecodePurpose::Answer).joined(),
      R"({"model":"m","stream":true,"max_tokens":500,)"
      R"("kv_transfer_params":{"remote_port":5600, "big":18446744073709551616}})");
}

TEST(NixlPullDecodeLeg, IsThePlainBodyWhereNothingWasKept) {
  const ClientRequest request(Api::Chat, R"({"model":"m","kv_transfer_params":{"a":1}})");
  EXPECT_EQ(json(NixlPullDialect().decode_body(request.call, {}, {}, DecodePurpose::Answer)),
            json(R"({"model":"m"})"));
}

TEST(NixlPullDecodeLeg, ThatOnlyReleasesTheBlocksAsksForOneToken) {
  const ClientRequest request(Api::Chat,
                              R"({"model":"m","stream":true,"stream_options":{},"max_tokens":500,)"
                              R"("cache_salt":"mine"})");
  PrefillOutcome outcome;
  outcome.handoff = R"({"p":1})";
  HandoffTicket ticket;
  ticket.request_id = "r1";
  EXPECT_EQ(
      json(NixlPullDialect().decode_body(request.call, ticket, outcome, DecodePurpose::Release)),
      json(R"({"model":"m","stream":false,"max_tokens":1,"kv_transfer_params":{"p":1},)"
           R"("cache_salt":"release-r1"})"))
      << "what it reads is no other request's to find";
}

HandoffTicket push_ticket() {
  HandoffTicket ticket;
  ticket.request_id = "req \"1\"";
  ticket.peer.nixl = {.engine_id = "e_dp1",
                      .side_channel = {"10.0.0.5", 5601},
                      .tensor_parallel_size = 4,
                      .pipeline_parallel_size = 2};
  return ticket;
}

TEST(NixlPushLegs, TellThePrefillWhatPullingTells) {
  const ClientRequest request(Api::Chat, R"({"model":"m","max_tokens":9})");
  EXPECT_EQ(NixlPushDialect().prefill_body(request.call, push_ticket()).joined(),
            NixlPullDialect().prefill_body(request.call, push_ticket()).joined());
}

TEST(NixlPushLegs, TellTheDecodeWhereThePrefillIs) {
  const ClientRequest request(Api::Chat, R"({"model":"m","stream":true})");
  EXPECT_EQ(
      json(NixlPushDialect().decode_body(request.call, push_ticket(), {}, DecodePurpose::Answer)),
      json(R"({"model":"m","stream":true,"kv_transfer_params":{"do_remote_decode":false,
                     "do_remote_prefill":true,"remote_engine_id":"e_dp1","remote_host":"10.0.0.5",
                     "remote_port":5601,"tp_size":4,"pp_size":2,"remote_request_id":"req \"1\""}})"));
}

TEST(NixlPushAnswer, IsKeptForWhatItTells) {
  const std::string params = R"({"remote_engine_id":"e", "remote_port":5600})";
  const auto told = NixlPushDialect().read_prefill_answer(
      R"({"choices":[{"finish_reason":"length"}],"kv_transfer_params":)" + params + "}");
  ASSERT_TRUE(told);
  EXPECT_EQ(told->handoff, params);
  const auto silent =
      NixlPushDialect().read_prefill_answer(R"({"choices":[{"finish_reason":"length"}]})");
  ASSERT_FALSE(silent) << "the decode worker would wait for ever";
  EXPECT_EQ(silent.error().code(), Errc::NoHandoff);
}

HandoffTicket mooncake_ticket() {
  HandoffTicket ticket;
  ticket.request_id = "t-1";
  ticket.peer.host = "10.0.0.5";
  ticket.peer.bootstrap_port = 9001;
  ticket.peer.engine_id = "engine-r3";
  return ticket;
}

TEST(MooncakeLegs, MeetUnderOneTransferId) {
  const ClientRequest request(Api::Chat, R"({"model":"m","stream":true,"max_tokens":9})");
  const MooncakeDialect dialect;
  EXPECT_EQ(
      json(dialect.prefill_body(request.call, mooncake_ticket())),
      json(R"({"model":"m","stream":false,"max_tokens":1,"ignore_eos":true,"kv_transfer_params":
                     {"do_remote_decode":true,"do_remote_prefill":false,"transfer_id":"t-1"}})"));
  EXPECT_EQ(json(dialect.decode_body(request.call, mooncake_ticket(), {}, DecodePurpose::Answer)),
            json(R"({"model":"m","stream":true,"max_tokens":9,"kv_transfer_params":
                     {"do_remote_decode":false,"do_remote_prefill":true,"transfer_id":"t-1",
                      "remote_bootstrap_addr":"http://10.0.0.5:9001","remote_engine_id":"engine-r3"}})"));
}

TEST(MooncakeLegs, NameAnIpv6AddressInBrackets) {
  const ClientRequest request(Api::Chat, "{}");
  HandoffTicket ticket = mooncake_ticket();
  ticket.peer.host = "fd00::5";
  ticket.peer.bootstrap_port = std::nullopt;
  const auto body =
      json(MooncakeDialect().decode_body(request.call, ticket, {}, DecodePurpose::Answer));
  EXPECT_EQ(body["kv_transfer_params"]["remote_bootstrap_addr"], "http://[fd00::5]:8998");
}

TEST(MooncakeAnswer, NeedsNoParamsAndMayStillBeFinal) {
  const auto handed =
      MooncakeDialect().read_prefill_answer(R"({"choices":[{"finish_reason":"length"}]})");
  ASSERT_TRUE(handed);
  EXPECT_EQ(handed->final_answer, std::nullopt);
  EXPECT_NE(handed->handoff, "");
  const auto ended = MooncakeDialect().read_prefill_answer(
      R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":null})");
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->final_answer, R"({"choices":[{"finish_reason":"stop"}]})");
}

}  // namespace
}  // namespace baton::engine
