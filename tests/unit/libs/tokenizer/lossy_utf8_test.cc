// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/lossy_utf8.h"

#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

TEST(LossyUtf8, LeavesTextAlone) {
  EXPECT_EQ(lossy_utf8("aé字😀"), "aé字😀");
  EXPECT_EQ(lossy_utf8(""), "");
}

// The examples of the Unicode standard, chapter 3.9, tables 3-8 to 3-11.
TEST(LossyUtf8, ReplacesWhatCouldHaveBeenACharacterOnce) {
  EXPECT_EQ(lossy_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(lossy_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
}

TEST(LossyUtf8, ReplacesACharacterThatIsCutOff) {
  EXPECT_EQ(lossy_utf8("a\xF0\x9F\x98"), "a\uFFFD");
}

}  // namespace
}  // namespace baton::tokenizer
