// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/given_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::pipeline {
namespace {

using engine::Api;
using testing::HasSubstr;

std::string refusal(Api api, const std::string& body, std::optional<std::uint64_t> vocabulary) {
  const auto checked = check_given_ids(api, *wire::JsonObject::parse(body), vocabulary);
  if (checked) return "";
  EXPECT_EQ(checked.error().code(), Errc::InvalidRequest);
  EXPECT_TRUE(checked.error().message().starts_with(checked.error().param().value_or("?")));
  return checked.error().message();
}

TEST(GivenIds, BelowTheVocabularyPass) {
  for (const std::string body :
       {R"({"prompt":[0, 1 ,99]})", R"({"prompt":[[0],[99,98],[]]})", R"({"prompt":[]})",
        R"({"prompt":"999"})", R"({"prompt":["999",[1]]})", R"({"input_ids":[99]})",
        R"({"prompt_token_ids":[99],"input_ids":null})", "{}"})
    EXPECT_EQ(refusal(Api::Completions, body, 100), "") << body;
}

TEST(GivenIds, BeyondItAreRefusedWithTheirPlaceAndTheLimit) {
  EXPECT_EQ(refusal(Api::Completions, R"({"prompt":[1,100]})", 100),
            "prompt[1] is 100, but token ids of this model are integers from 0 to 99");
  EXPECT_EQ(refusal(Api::Completions, R"({"prompt":[[1],[2,3,999999999]]})", 100),
            "prompt[1][2] is 999999999, but token ids of this model are integers from 0 to 99");
  EXPECT_EQ(refusal(Api::Chat, R"({"messages":[],"input_ids":[999999999]})", 100),
            "input_ids[0] is 999999999, but token ids of this model are integers from 0 to 99");
  EXPECT_THAT(refusal(Api::Chat, R"({"prompt_token_ids":[5,-1]})", 100),
              HasSubstr("prompt_token_ids[1] is -1"));
  EXPECT_THAT(refusal(Api::Completions, R"({"prompt":["text",[100]]})", 100),
              HasSubstr("prompt[1][0] is 100"));
}

TEST(GivenIds, ThatNoModelCanHaveAreRefusedWithoutItsVocabulary) {
  for (const std::string id : {"-1", "1.0", "1.5", "1e3", "2147483648", "18446744073709551616",
                               "123456789012345678901234567890123456789012345678901234567890"}) {
    EXPECT_THAT(refusal(Api::Completions, R"({"prompt":[7,)" + id + "]}", {}),
                HasSubstr("token ids are integers from 0 to 2147483647"))
        << id;
    EXPECT_NE(refusal(Api::Chat, R"({"input_ids":[)" + id + "]}", {}), "") << id;
  }
  EXPECT_NE(refusal(Api::Completions, R"({"prompt":[[7,"a"]]})", {}), "");
  EXPECT_EQ(refusal(Api::Completions, R"({"prompt":[2147483647]})", {}), "");
}

TEST(GivenIds, AreLookedForWhereEnginesTakeThem) {
  const auto bytes = [](Api api, const std::string& body) {
    return given_ids_bytes(api, *wire::JsonObject::parse(body));
  };
  EXPECT_EQ(bytes(Api::Completions, R"({"prompt":[1,2]})"), 5U);
  EXPECT_EQ(bytes(Api::Chat, R"({"prompt":[1,2]})"), 0U);
  EXPECT_EQ(bytes(Api::Chat, R"({"input_ids":[1,2],"prompt_token_ids":[3]})"), 8U);
  EXPECT_EQ(bytes(Api::Completions, R"({"prompt":"[1,2]"})"), 0U);
  EXPECT_EQ(refusal(Api::Chat, R"({"prompt":[-1]})", 10), "");
}

}  // namespace
}  // namespace baton::pipeline
