// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/text_table.h"

#include <gtest/gtest.h>

#include <array>

namespace baton::cli {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheyMustBe) {
  const std::array<Column, 3> columns{{{"NAME"}, {"COUNT", true}, {"WHY"}}};
  EXPECT_EQ(text_table(columns, {{"a", "5", ""}, {"longer", "123456", "x"}}),
            "NAME     COUNT  WHY\n"
            "a            5\n"
            "longer  123456  x\n");
}

TEST(TextTable, WithoutRowsThereAreTitles) {
  const std::array<Column, 1> columns{{{"NAME"}}};
  EXPECT_EQ(text_table(columns, {}), "NAME\n");
}

TEST(Plain, WhatOthersWroteCannotMoveTheCursor) {
  EXPECT_EQ(plain("a\x1b[2Jb\nc\x7f"), "a [2Jb c ");
  EXPECT_EQ(plain("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

}  // namespace
}  // namespace baton::cli
