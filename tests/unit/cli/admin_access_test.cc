// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/admin_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using testing::HasSubstr;

TEST(AdminAccess, NamesTheFlagThatMakesNoSense) {
  EXPECT_TRUE(client_of({}));
  EXPECT_TRUE(client_of({.admin = "10.0.0.1:8081", .key_file = {}}));
  const auto address = client_of({.admin = "ftp://x", .key_file = {}});
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message(), HasSubstr("--admin"));
  const auto key = client_of({.admin = "http://127.0.0.1:1", .key_file = "/nonexistent/keys"});
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().message(), HasSubstr("--key-file"));
}

TEST(AdminAccess, ARefusalIsInTheRoutersWords) {
  EXPECT_EQ(body_of(AdminClient::Answer{200, "all"}).value(), "all");
  EXPECT_EQ(
      body_of(AdminClient::Answer{404, R"({"error":{"message":"no such"}})"}).error().message(),
      "no such");
  for (const char* body : {"", "[]", R"({"error":{"message":7}})", R"({"error":"x"})"})
    EXPECT_THAT(body_of(AdminClient::Answer{502, body}).error().message(), HasSubstr("502"))
        << body;
  EXPECT_EQ(body_of(fail(Errc::EngineTimeout, "late")).error().message(), "late");
}

TEST(AdminAccess, NamesAreSafeInPaths) {
  EXPECT_EQ(percent_encoded("a-1._~:Z"), "a-1._~:Z");
  EXPECT_EQ(percent_encoded("a/b ?#%"), "a%2Fb%20%3F%23%25");
  EXPECT_EQ(percent_encoded("\xc3\xbc"), "%C3%BC");
}

}  // namespace
}  // namespace baton::cli
