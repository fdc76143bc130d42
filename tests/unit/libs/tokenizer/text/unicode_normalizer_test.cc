// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/unicode_normalizer.h"

#include "libs/tokenizer/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::tokenizer {
namespace {

std::string normal(NormalForm form, std::string_view text) {
  std::string buffer;
  return std::string(UnicodeNormalizer(form).apply(text, buffer));
}

TEST(UnicodeNormalizer, ComposesAndDecomposes) {
  EXPECT_EQ(normal(NormalForm::C, "e\u0301xA\u030A"), "éxÅ");
  EXPECT_EQ(normal(NormalForm::D, "éx\u212B"), "e\u0301xA\u030A");
  EXPECT_EQ(normal(NormalForm::Kc, "ﬁ①ｱﾞ"), "fi1ア\u3099");
  EXPECT_EQ(normal(NormalForm::Kd, "ﬁ①é"), "fi1e\u0301");
  EXPECT_EQ(normal(NormalForm::C, "ﬁ①\u212B"), "ﬁ①Å");
  EXPECT_EQ(normal(NormalForm::C, "\u1100\u1161\u11A8x"), "각x");
  EXPECT_EQ(normal(NormalForm::D, "각"), "\u1100\u1161\u11A8");
}

TEST(UnicodeNormalizer, PutsMarksInOrder) {
  EXPECT_EQ(normal(NormalForm::D, "a\u0301\u0323"), "a\u0323\u0301");
  EXPECT_EQ(normal(NormalForm::C, "q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(normal(NormalForm::C, "a\u0301\u0323"), "ạ\u0301");
  EXPECT_EQ(normal(NormalForm::C, "\u0323\u0301"), "\u0323\u0301");
}

TEST(UnicodeNormalizer, DoesNotComposeWhatIsExcluded) {
  EXPECT_EQ(normal(NormalForm::C, "\u0958"), "\u0915\u093C");
  EXPECT_EQ(normal(NormalForm::C, "\u2126"), "Ω");
}

// Unicode 9 knows neither the fraction of U+32FF nor that U+0898 is a mark.
TEST(UnicodeNormalizer, GoesByUnicode9) {
  EXPECT_EQ(normal(NormalForm::Kc, "\u32FF"), "\u32FF");
  EXPECT_EQ(normal(NormalForm::Kd, "\U0001E030"), "\U0001E030");
  EXPECT_EQ(normal(NormalForm::D, "a\u0898\u0316"), "a\u0898\u0316");
  EXPECT_EQ(normal(NormalForm::C, "a\u0898\u0301"), "a\u0898\u0301");
}

TEST(UnicodeNormalizer, LeavesTheRestOfALongTextAlone) {
  std::string text(1000, 'a');
  text += "漢字 кот é";
  std::string buffer = "kept";
  const UnicodeNormalizer nfc(NormalForm::C);
  EXPECT_EQ(nfc.apply(text, buffer).data(), text.data());
  EXPECT_EQ(buffer, "kept");
  const std::string tail = text + "e\u0301" + text;
  EXPECT_EQ(nfc.apply(tail, buffer), text + "é" + text);
}

TEST(UnicodeNormalizer, TakesLongRunsOfMarks) {
  std::string marks;
  std::string above;
  std::string below;
  for (int i = 0; i < 20'000; ++i) {
    marks += "\u0301\u0323";
    above += "\u0301";
    below += "\u0323";
  }
  EXPECT_EQ(normal(NormalForm::D, "x" + marks), "x" + below + above);
}

}  // namespace
}  // namespace baton::tokenizer
