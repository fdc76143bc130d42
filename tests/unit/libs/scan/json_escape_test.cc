// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/scan/json_escape.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::scan {
namespace {

std::string escaped(std::string_view text, Escape escape = Escape::OneLine) {
  std::string out;
  append_escaped(out, text, escape);
  return out;
}

TEST(JsonEscape, LeavesWhatJsonAllows) {
  const std::string allowed = "a\x7f/b\u2028c\u2029d\u0085";
  EXPECT_EQ(escaped(allowed, Escape::AsJson), allowed);
  EXPECT_EQ(json_quote(allowed), '"' + allowed + '"');
}

TEST(JsonEscape, LeavesPlainTextAndUtf8Alone) {
  EXPECT_EQ(escaped(""), "");
  EXPECT_EQ(escaped("model demo/7B"), "model demo/7B");
  EXPECT_EQ(escaped("é € 😀"), "é € 😀");
}

TEST(JsonEscape, EscapesQuotesBackslashesAndControlCharacters) {
  EXPECT_EQ(escaped("a\"b\\c"), R"(a\"b\\c)");
  EXPECT_EQ(escaped("a\nb\rc\td"), R"(a\nb\rc\td)");
  EXPECT_EQ(escaped(std::string_view("\0\x1b[2J\x7f", 6)), R"(\u0000\u001b[2J\u007f)");
}

TEST(JsonEscape, EscapesWhatUnicodeCallsALineEndOrAControl) {
  EXPECT_EQ(escaped("a\u2028b\u2029c\u0085d\u009be"), R"(a\u2028b\u2029c\u0085d\u009be)");
}

TEST(JsonEscape, ReplacesEveryByteThatIsNotUtf8) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("a\xff"
                    "b"),
            "a" + bad + "b");
  EXPECT_EQ(escaped("\xc3"), bad);                      // cut short
  EXPECT_EQ(escaped("\xc3\n"), bad + "\\n");            // the line end is not swallowed
  EXPECT_EQ(escaped("\xc0\x8a"), bad + bad);            // overlong line end
  EXPECT_EQ(escaped("\xe0\x80\x8a"), bad + bad + bad);  // overlong again
  EXPECT_EQ(escaped("\xf0\x80\x80\x8a"), bad + bad + bad + bad);
  EXPECT_EQ(escaped("\xed\xa0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(escaped("\x80"), bad);                                // continuation alone
}

}  // namespace
}  // namespace baton::scan
