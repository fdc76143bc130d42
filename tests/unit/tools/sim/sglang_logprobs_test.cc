// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/sglang_logprobs.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vector>

namespace baton::sim {
namespace {

using nlohmann::json;

TEST(SglangLogprobs, HaveAnEntryForEachTokenAndNoneForAPromptsFirst) {
  const std::vector<TokenId> prompt{127, 255};
  const std::vector<TokenId> answer{383};
  EXPECT_EQ(json::parse(sglang_logprobs(prompt, answer, 1)),
            json::parse(R"({"text_offset":[-1,-1,-1],"token_logprobs":[null,-2.0,-3.0],
                "tokens":["127","255","383"],"top_logprobs":[null,{"255":-2.0},{"383":-3.0}]})"));
  EXPECT_EQ(json::parse(sglang_logprobs({}, answer, 0)),
            json::parse(R"({"text_offset":[-1],"token_logprobs":[-3.0],"tokens":["383"],
                "top_logprobs":[]})"));
}

}  // namespace
}  // namespace baton::sim
