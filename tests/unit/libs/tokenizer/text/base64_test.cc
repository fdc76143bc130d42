// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/base64.h"

#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

// RFC 4648, section 10.
TEST(Base64, IsDecoded) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("/+8A"), std::string("\xFF\xEF\0", 3));
}

TEST(Base64, IsRefusedWhereBroken) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zm9v\n", "Z-8=", "====", "Zg==Zg=="}) {
    EXPECT_FALSE(decode_base64(text)) << text;
  }
}

}  // namespace
}  // namespace baton::tokenizer
