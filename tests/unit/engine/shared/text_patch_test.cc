// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/text_patch.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::engine {
namespace {

TEST(TextPatch, ReplacesPartsInWhateverOrderTheyCome) {
  const std::string text = "one two three";
  const std::string_view view = text;
  TextPatch patch(text);
  EXPECT_TRUE(patch.empty());
  patch.replace(view.substr(8), "3");
  patch.replace(view.substr(0, 3), "first");
  patch.replace(view.substr(4, 3), "");
  EXPECT_FALSE(patch.empty());
  EXPECT_EQ(patch.apply(), "first  3");
}

TEST(TextPatch, LeavesATextAloneWithoutThem) { EXPECT_EQ(TextPatch("text").apply(), "text"); }

}  // namespace
}  // namespace baton::engine
