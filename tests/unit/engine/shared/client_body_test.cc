// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/client_body.h"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

TEST(ClientBody, KeepsTheTextItsMembersPointInto) {
  const auto body = ClientBody::parse(std::string(R"({"model":"m"})"));
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)->object().find_string("model"), "m");
  // Shared: the text lives as long as the last who uses it.
  const std::shared_ptr<const ClientBody> kept = *body;
  EXPECT_EQ(kept->object().text(), R"({"model":"m"})");
}

TEST(ClientBody, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "{", R"("text")", R"({"a":1}x)"}) {
    const auto body = ClientBody::parse(text);
    ASSERT_FALSE(body) << text;
    EXPECT_EQ(body.error().code(), Errc::InvalidJson) << text;
  }
}

}  // namespace
}  // namespace baton::engine
