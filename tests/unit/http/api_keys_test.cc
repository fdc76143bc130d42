// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/api_keys.h"

#include <gtest/gtest.h>

namespace baton::http {
namespace {

Result<std::size_t> admit(const std::vector<std::string>& keys, const char* authorization) {
  wire::Headers headers;
  if (authorization) headers.add("Authorization", authorization);
  return ApiKeys(keys).admit(headers);
}

TEST(ApiKeys, LetEverybodyInWhereThereAreNone) {
  EXPECT_TRUE(admit({}, nullptr));
  EXPECT_TRUE(admit({}, "Bearer whatever"));
}

TEST(ApiKeys, LetInWhoeverNamesOneOfThem) {
  const std::vector<std::string> keys{"first", "second key", "third"};
  for (const char* good :
       {"Bearer first", "bearer third", "BEARER second key", "Bearer second key"}) {
    EXPECT_TRUE(admit(keys, good)) << good;
  }
}

TEST(ApiKeys, RefuseEverybodyElse) {
  const std::vector<std::string> keys{"first", "second"};
  for (const char* bad : {"", "Bearer", "Bearer ", "Bearer firs", "Bearer first2", "Bearer FIRST",
                          "Bearer firstsecond", "Basic first", "first", "Bearerfirst",
                          "Bearer first, Bearer second", " Bearer first"}) {
    const auto admitted = admit(keys, bad);
    ASSERT_FALSE(admitted) << bad;
    EXPECT_EQ(admitted.error().code(), Errc::Unauthorized) << bad;
  }
  const auto without = admit(keys, nullptr);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code(), Errc::Unauthorized);
}

TEST(ApiKeys, TellWhichOneItWasAndNotTheKey) {
  const std::vector<std::string> keys{"first", "second", "third"};
  EXPECT_EQ(admit(keys, "Bearer first").value(), 1U);
  EXPECT_EQ(admit(keys, "Bearer second").value(), 2U);
  EXPECT_EQ(admit(keys, "bearer second").value(), 2U);
  EXPECT_EQ(admit(keys, "Bearer third").value(), 3U);
  EXPECT_EQ(admit({}, "Bearer second").value(), 0U) << "nobody has checked it";
  EXPECT_EQ(ApiKeys::name_of(2), "key 2");
  EXPECT_EQ(ApiKeys::name_of(0), "");
}

TEST(ApiKeys, DoNotRepeatWhatWasGiven) {
  EXPECT_EQ(admit({"k"}, "Bearer wrong-secret").error().message().find("wrong-secret"),
            std::string::npos);
}

}  // namespace
}  // namespace baton::http
