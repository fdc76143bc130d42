// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/base64/base64.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace baton::base64 {
namespace {

// The vectors of RFC 4648.
constexpr std::array kVectors{std::pair("", ""),
                              std::pair("f", "Zg=="),
                              std::pair("fo", "Zm8="),
                              std::pair("foo", "Zm9v"),
                              std::pair("foob", "Zm9vYg=="),
                              std::pair("fooba", "Zm9vYmE="),
                              std::pair("foobar", "Zm9vYmFy")};

TEST(Base64, WritesTheStandardsVectors) {
  for (const auto& [bytes, text] : kVectors) EXPECT_EQ(encode(bytes), text);
}

TEST(Base64, ReadsTheStandardsVectors) {
  for (const auto& [bytes, text] : kVectors) EXPECT_EQ(decode(text), bytes);
}

TEST(Base64, KeepsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(decode(encode(all)), all);
}

TEST(Base64, RefusesWhatIsNotStandardBase64) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg==Zg==", "Zm9v ", " Zm9", "Zm\n9",
                           "Z!==", "Z===", "====", "Zg=a", "_-_-", "Zm9v\xc3\xbc\xc3\xbc"}) {
    EXPECT_EQ(decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace baton::base64
