// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/unicode.h"

#include <gtest/gtest.h>

namespace baton::tokenizer {
namespace {

// Counted with the regular expressions of the Hugging Face tokenizers 0.23, which go by Unicode 16.
TEST(Unicode, HasTheCategoriesOfUnicode16) {
  struct Count {
    std::string_view property;
    unsigned count;
  };
  for (const auto& [property, count] :
       {Count{"L", 141028}, Count{"N", 1911}, Count{"M", 2501}, Count{"P", 855}, Count{"S", 8514},
        Count{"Lu", 1858}, Count{"Lt", 31}, Count{"Lm", 404}, Count{"Lo", 136477},
        Count{"Ll", 2258}, Count{"Nd", 760}, Count{"Mn", 2020}, Count{"Z", 19}, Count{"Cc", 65},
        Count{"Han", 99030}, Count{"Alphabetic", 142759}, Count{"Uppercase", 1978},
        Count{"Lowercase", 2569}}) {
    const auto set = property_set(property);
    ASSERT_TRUE(set) << property;
    EXPECT_EQ(set->size(), count) << property;
  }
  EXPECT_EQ(white_space().size(), 25U);
  EXPECT_EQ(word_characters().size(), 144665U);
}

TEST(Unicode, ComparesNamesOfPropertiesLoosely) {
  EXPECT_EQ(property_set("Uppercase_Letter"), property_set("lu"));
  EXPECT_EQ(property_set("old-italic"), property_set(" Old_Italic "));
  EXPECT_EQ(property_set("Any"), CharSet::all());
  EXPECT_FALSE(property_set("Script=Han"));
  EXPECT_FALSE(property_set(""));
}

TEST(Unicode, TellsTheKindOfACharacter) {
  struct Known {
    char32_t code;
    CharKind kind;
  };
  for (const auto& [code, kind] :
       {Known{'A', CharKind::UppercaseLetter}, Known{'\t', CharKind::ControlSpace},
        Known{0x85, CharKind::ControlSpace}, Known{0x7F, CharKind::Control},
        Known{0xA0, CharKind::SpaceSeparator}, Known{0x2028, CharKind::LineSeparator},
        Known{0x180E, CharKind::Format}, Known{0x301, CharKind::NonspacingMark},
        Known{0x1C5, CharKind::TitlecaseLetter}, Known{0x4E00, CharKind::OtherLetter},
        Known{0x105C0, CharKind::OtherLetter},  // new in Unicode 16
        Known{0x11DE0, CharKind::Unassigned},   // new in Unicode 17
        Known{0x10FFFF, CharKind::Unassigned}, Known{0x10FFFD, CharKind::PrivateUse}}) {
    EXPECT_EQ(CharKind{kind_table()[code]}, kind) << static_cast<unsigned>(code);
  }
}

TEST(Unicode, KnowsOtherVersions) {
  EXPECT_EQ(rust_numeric().size(), 1924U);
  EXPECT_TRUE(rust_numeric().contains(0x11DE0));
  EXPECT_EQ(unicode8_punctuation().size(), 726U);
  EXPECT_EQ(unicode8_nonspacing_mark().size(), 1567U);
  EXPECT_EQ(unicode9_mark().size(), 2097U);
  EXPECT_TRUE(not_in_unicode9().contains(0x1E030));
  EXPECT_FALSE(not_in_unicode9().contains(0x301));
}

TEST(CaseMaps, JoinLettersThatDifferInCaseOnly) {
  const CaseMaps& maps = CaseMaps::instance();
  EXPECT_EQ(maps.closure(CharSet::of('s')), (CharSet{{'S', 'S'}, {'s', 's'}, {0x17F, 0x17F}}));
  EXPECT_EQ(maps.closure(CharSet::of('K')), (CharSet{{'K', 'K'}, {'k', 'k'}, {0x212A, 0x212A}}));
  EXPECT_EQ(maps.closure(CharSet::of('i')), (CharSet{{'I', 'I'}, {'i', 'i'}}));
  EXPECT_EQ(maps.closure(CharSet::of('1')), CharSet::of('1'));
  EXPECT_EQ(maps.fold(0x3C2), 0x3C3U);
  EXPECT_EQ(maps.long_folds().at(0xDF), U"ss");
}

TEST(CaseMaps, HaveLowerCaseLetters) {
  const CaseMaps& maps = CaseMaps::instance();
  EXPECT_EQ(maps.lower('Q'), U'q');
  EXPECT_EQ(maps.lower('q'), U'q');
  EXPECT_EQ(maps.lower(0x3A3), 0x3C3U);
  EXPECT_EQ(maps.lower(0x1E9E), 0xDFU);
  EXPECT_EQ(maps.lower(0x10400), 0x10428U);
  EXPECT_EQ(maps.with_lower().size(), 1487U);  // and U+0130
}

}  // namespace
}  // namespace baton::tokenizer
