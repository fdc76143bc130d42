// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/base64.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

// RFC 4648, section 10.
TEST(Base64, GivesThePublishedVectors) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(decode_base64("Zm9vYg=="), "foob");
  EXPECT_EQ(decode_base64("Zm9vYmE="), "fooba");
}

TEST(Base64, RefusesWhatIsNone) {
  EXPECT_EQ(decode_base64("Zg="), "");
  EXPECT_EQ(decode_base64("Z!=="), "");
}

}  // namespace
}  // namespace baton::sim
