// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/version.h"

#include <gtest/gtest.h>

namespace baton::model {
namespace {

TEST(Version, IsReadAsEnginesWriteTheirs) {
  const std::pair<const char*, Version> cases[] = {
      {"0.27.1", {0, 27, 1}},          {"0.27", {0, 27, 0}},
      {"v1.3.0rc2", {1, 3, 0}},        {"0.5.10.post1", {0, 5, 10}},
      {"0.27.1.dev3+gab", {0, 27, 1}}, {"0.1.dev12+gab", {0, 1, 0}},
      {"1.2rc1", {1, 2, 0}},           {"65535.65535.65535", {65535, 65535, 65535}},
  };
  for (const auto& [text, version] : cases) EXPECT_EQ(parse_version(text), version) << text;
}

TEST(Version, IsUnknownWhereThereIsNoNumber) {
  for (const char* text : {"", "v", "dev", "1", "1.", ".1", "1.x", "-1.2", "unknown", "65536.1",
                           "1.65536", "1.2.65536", " 1.2"})
    EXPECT_EQ(parse_version(text), std::nullopt) << text;
}

TEST(Version, IsOrderedByItsNumbers) {
  EXPECT_LT((Version{0, 9, 9}), (Version{0, 27, 0}));
  EXPECT_LT((Version{0, 27, 9}), (Version{1, 0, 0}));
  EXPECT_LT((Version{0, 5, 9}), (Version{0, 5, 16}));
}

}  // namespace
}  // namespace baton::model
