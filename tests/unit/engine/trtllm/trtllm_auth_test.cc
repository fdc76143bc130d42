// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/trtllm/trtllm_auth.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using model::SignedPart;
using model::TrtllmAuth;

// Expected digests are Python's: hmac.new(b"secret", json.dumps(payload, sort_keys=True,
// separators=(",", ":")).encode(), hashlib.sha256).hexdigest()

TEST(TrtllmAuth, SignsTheFieldsThatLeadToACache) {
  const TrtllmAuth auth{"secret", SignedPart::Fields};
  EXPECT_EQ(
      auth_header(R"({"request_type":"generation_only","ctx_info_endpoint":"tcp://10.0.0.1:5000"})",
                  auth),
      "x-trtllm-disagg-auth: "
      "sha256=9f231f1556947f2cc0d68b742964cb16e8662f6b41262d536be4f2692f786130\r\n");
  EXPECT_EQ(
      auth_header(R"({"ctx_info_endpoint":["tcp://10.0.0.1:5000","tcp://10.0.0.2:5000"]})", auth),
      auth_header(R"({"ctx_info_endpoint":"tcp://10.0.0.1:5000","draft_tokens":[1]})", auth))
      << "of several endpoints the first, and nothing else";
  EXPECT_EQ(auth_header(R"({"encoded_opaque_state":"A\u00e4/+=","ctx_info_endpoint":null})", auth),
            "x-trtllm-disagg-auth: "
            "sha256=42fd47e96a60908a6f744a0105a6eeaaa9dbdac984f255efd8ebb28c17ea614d\r\n");
}

TEST(TrtllmAuth, SignsAllParamsWhereTheReleaseWantsIt) {
  const TrtllmAuth auth{"secret", SignedPart::Params};
  EXPECT_EQ(
      auth_header(
          R"({ "request_type":"generation_only","ctx_request_id":7, "ctx_info_endpoint":"e",)"
          R"("ctx_usage":{"b":1,"a":null}})",
          auth),
      "x-trtllm-disagg-auth: 12ba5722b0e1f3ec0c452a8307abf09aa143d8d4d0fba846ef9c2d76565cd9e0\r\n");
}

TEST(TrtllmAuth, SignsNothingThatNeedsNoSignature) {
  const char* protected_params = R"({"encoded_opaque_state":"AA=="})";
  EXPECT_NE(auth_header(protected_params, {"secret", SignedPart::Params}), "");
  EXPECT_EQ(auth_header(protected_params, {}), "") << "no key";
  for (const char* params : {"", "{}", "[]", "{", R"({"request_type":"context_only"})",
                             R"({"encoded_opaque_state":null,"ctx_info_endpoint":[]})"}) {
    EXPECT_EQ(auth_header(params, {"secret", SignedPart::Fields}), "") << params;
    EXPECT_EQ(auth_header(params, {"secret", SignedPart::Params}), "") << params;
  }
}

}  // namespace
}  // namespace baton::engine
