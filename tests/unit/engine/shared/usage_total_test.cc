// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/usage_total.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace baton::engine {
namespace {

using Json = nlohmann::json;

Json total(const std::vector<std::string>& branches, std::size_t choices_per_prompt) {
  return Json::parse(total_usage(branches, choices_per_prompt));
}

TEST(TotalUsage, CountsAPromptByTheFirstOfItsBranchesThatSpoke) {
  const std::string once = R"({"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
                           R"("prompt_tokens_details":{"cached_tokens":7}})";
  const std::string again = R"({"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,)"
                            R"("prompt_tokens_details":{"cached_tokens":9}})";
  const std::string other = R"({"prompt_tokens":20,"completion_tokens":1,"total_tokens":21})";
  EXPECT_EQ(total({"", once, again, other, "", ""}, 3),
            Json::parse(R"({"prompt_tokens":30,"completion_tokens":7,"total_tokens":37,)"
                        R"("prompt_tokens_details":{"cached_tokens":7}})"));
  EXPECT_EQ(total_usage({}, 1), "");
  EXPECT_EQ(total_usage(std::vector<std::string>{"", ""}, 1), "");
}

TEST(TotalUsage, AddsUpWhatItHasNeverHeardOf) {
  const std::string one =
      R"({"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"reasoning_tokens":1,)"
      R"("prompt_tokens_details":{"cached_tokens":null,"created_cache_tokens":128,)"
      R"("multimodal_tokens":{"image":3}},)"
      R"("completion_tokens_details":{"reasoning_tokens":1,"of":{"new":5}},"tier":"a","x":null})";
  const std::string two =
      R"({"prompt_tokens":5,"total_tokens":8,"completion_tokens":3,"reasoning_tokens":2,)"
      R"("prompt_tokens_details":{"cached_tokens":16,"created_cache_tokens":256,)"
      R"("multimodal_tokens":{"image":1,"audio":2}},)"
      R"("completion_tokens_details":{"reasoning_tokens":2,"of":{"new":6}},"tier":"b","x":7})";
  EXPECT_EQ(
      total({one, two}, 1),
      Json::parse(
          R"({"prompt_tokens":9,"total_tokens":14,"completion_tokens":5,"reasoning_tokens":3,)"
          R"("prompt_tokens_details":{"cached_tokens":16,"created_cache_tokens":384,)"
          R"("multimodal_tokens":{"image":4,"audio":2}},)"
          R"("completion_tokens_details":{"reasoning_tokens":3,"of":{"new":11}},)"
          R"("tier":"a","x":7})"));
  EXPECT_EQ(total({one, two}, 2),
            Json::parse(
                R"({"prompt_tokens":4,"total_tokens":9,"completion_tokens":5,"reasoning_tokens":3,)"
                R"("prompt_tokens_details":{"cached_tokens":null,"created_cache_tokens":128,)"
                R"("multimodal_tokens":{"image":3}},)"
                R"("completion_tokens_details":{"reasoning_tokens":3,"of":{"new":11}},)"
                R"("tier":"a","x":7})"))
      << "two choices of one prompt";
}

TEST(TotalUsage, SurvivesAbsurdCounts) {
  const std::string absurd =
      R"({"prompt_tokens":9223372036854775807,"completion_tokens":18446744073709551615,)"
      R"("details":{"a":-9223372036854775808},"b":1e300})";
  const Json sum = total(std::vector<std::string>(256, absurd), 1);
  EXPECT_GT(sum["prompt_tokens"], 0);
  EXPECT_GT(sum["completion_tokens"], 0);
  EXPECT_EQ(sum["details"]["a"], 0);
}

TEST(TotalUsage, SurvivesWhatIsNoUsage) {
  EXPECT_EQ(total_usage(std::vector<std::string>{"[1]", "{", "7"}, 1), "");
  std::string deep = R"({"a":)";
  for (int i = 0; i < 100; ++i) deep += R"({"a":)";
  deep += "1" + std::string(101, '}');
  EXPECT_TRUE(total({deep, deep}, 1).contains("a"));
}

}  // namespace
}  // namespace baton::engine
