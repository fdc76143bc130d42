// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/members.h"

#include "shown.h"

#include <gtest/gtest.h>

#include <string_view>

namespace baton::prompt {
namespace {

constexpr std::string_view kMembers = R"({"a":null,"t":true,"f":false,"n":1,"s":"true"})";

TEST(Members, ThatAreNullAreNotGiven) {
  const auto body = wire::JsonObject::parse(kMembers).value();
  EXPECT_FALSE(is_given(body, "a"));
  EXPECT_FALSE(is_given(body, "absent"));
  EXPECT_TRUE(is_given(body, "f"));

  const jinja::Value value = from_json(kMembers);
  EXPECT_EQ(find_present(value.as_dict(), "a"), nullptr);
  EXPECT_EQ(find_present(value.as_dict(), "absent"), nullptr);
  ASSERT_NE(find_present(value.as_dict(), "n"), nullptr);
  EXPECT_EQ(find_present(value.as_dict(), "n")->as_int(), 1);
}

TEST(Flag, IsWhatTheBodySaysOrTheDefault) {
  const auto body = wire::JsonObject::parse(kMembers).value();
  EXPECT_TRUE(flag(body, "t", false).value());
  EXPECT_FALSE(flag(body, "f", true).value());
  EXPECT_TRUE(flag(body, "a", true).value());
  EXPECT_FALSE(flag(body, "absent", false).value());
}

TEST(Flag, RefusesWhatIsNeitherTrueNorFalse) {
  const auto body = wire::JsonObject::parse(kMembers).value();
  for (const char* const key : {"n", "s"}) {
    const auto read = flag(body, key, true);
    ASSERT_FALSE(read) << key;
    EXPECT_EQ(read.error().code(), Errc::InvalidRequest);
    EXPECT_EQ(read.error().param(), key);
  }
}

}  // namespace
}  // namespace baton::prompt
