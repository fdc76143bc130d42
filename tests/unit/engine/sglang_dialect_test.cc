// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/sglang_dialect.h"

#include "unit/engine/client_request.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

HandoffTicket ticket() {
  HandoffTicket made;
  made.bootstrap_host = "10.0.0.5";
  made.bootstrap_port = 8998;
  made.bootstrap_room = 9223372036854775807;  // the largest there is
  return made;
}

TEST(SglangLegs, GetTheSameBodyWithTheRoomBehindIt) {
  const ClientRequest request(Api::Chat, R"({"model":"m","stream":true,"max_tokens":9,"n":2})");
  const std::string expected =
      R"({"model":"m","stream":true,"max_tokens":9,"n":2,"bootstrap_host":"10.0.0.5",)"
      R"("bootstrap_port":8998,"bootstrap_room":9223372036854775807})";
  const SglangDialect dialect;
  EXPECT_EQ(dialect.prefill_body(request.call, ticket()).joined(), expected);
  EXPECT_EQ(dialect.decode_body(request.call, ticket(), {}, DecodePurpose::Answer).joined(),
            expected);
}

TEST(SglangLegs, SayNullForAPortNobodyKnows) {
  const ClientRequest request(Api::Chat, R"({"model":"m"})");
  HandoffTicket unknown = ticket();
  unknown.bootstrap_port = std::nullopt;
  const auto body = json(SglangDialect().prefill_body(request.call, unknown));
  ASSERT_TRUE(body.contains("bootstrap_port"));
  EXPECT_TRUE(body["bootstrap_port"].is_null());
}

TEST(SglangLegs, OverruleHandoffFieldsOfTheClient) {
  const ClientRequest request(
      Api::Chat,
      R"({"bootstrap_host":"evil","bootstrap_port":1,"bootstrap_room":[1,2],)"
      R"("disagg_prefill_dp_rank":3,"kv_transfer_params":{},"model":"alias"})",
      "real");
  EXPECT_EQ(json(SglangDialect().prefill_body(request.call, ticket())),
            json(R"({"model":"real","bootstrap_host":"10.0.0.5","bootstrap_port":8998,)"
                 R"("bootstrap_room":9223372036854775807})"));
}

TEST(SglangLegs, KeepAListOfPromptsBecauseTheEngineCountsTheRoomsItself) {
  const ClientRequest request(Api::Completions, R"({"prompt":["a","b"]})");
  EXPECT_TRUE(SglangDialect().can_hand_off(request.call));
  const auto body = json(SglangDialect().prefill_body(request.call, ticket()));
  EXPECT_EQ(body["prompt"], json(R"(["a","b"])"));
  EXPECT_EQ(body["bootstrap_room"], 9223372036854775807);
}

TEST(SglangPrefillAnswer, CarriesNothing) {
  const auto outcome = SglangDialect().read_prefill_answer(R"({"choices":[]})");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->handoff, "");
  EXPECT_EQ(outcome->final_answer, std::nullopt);
}

}  // namespace
}  // namespace baton::engine
