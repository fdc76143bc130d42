// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/response.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using model::Engine;
using nlohmann::json;

json event(const std::string& sse) {
  EXPECT_TRUE(sse.starts_with("data: "));
  EXPECT_TRUE(sse.ends_with("\n\n"));
  return json::parse(sse.substr(6));
}

GenerationRequest chat_request() { return {}; }

TEST(Response, UsageChunkHasNoChoices) {
  const ResponseShape shape(Engine::Trtllm, chat_request(), "x", "demo", 1);
  std::string out;
  shape.usage(out, {.prompt_tokens = 10, .completion_tokens = 3, .cached_tokens = 8});
  EXPECT_EQ(event(out)["choices"], json::array());
  EXPECT_EQ(event(out)["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":3,
      "total_tokens":13,"prompt_tokens_details":{"cached_tokens":8}})"));
}

}  // namespace
}  // namespace baton::sim
