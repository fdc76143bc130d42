// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/shared_text.h"

#include "unit/libs/jinja/rendering.h"

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Text, CountsCodePoints) {
  const Text text("aé日🎉");
  EXPECT_EQ(text.length(), 4U);
  EXPECT_FALSE(text.ascii());
  EXPECT_EQ(text.offset(0), 0U);
  EXPECT_EQ(text.offset(2), 3U);
  EXPECT_EQ(text.offset(3), 6U);
  EXPECT_EQ(text.offset(4), 10U);
  EXPECT_EQ(text.offset(99), 10U);
  EXPECT_TRUE(Text("plain").ascii());
}

TEST(Text, SharesLongPiecesAndCopiesShortOnes) {
  const auto whole = make<Text>(std::string(500, 'a') + std::string(500, 'b'));
  const auto piece = whole->piece(400, 200);
  EXPECT_EQ(piece->view().data(), whole->view().data() + 400);
  const auto inner = piece->piece(50, 100);
  EXPECT_EQ(inner->view(), std::string(50, 'a') + std::string(50, 'b'));
  const auto small = whole->piece(0, 3);
  EXPECT_NE(small->view().data(), whole->view().data());
  EXPECT_EQ(small->view(), "aaa");
}

TEST(Text, PointsToWhatOutlivesIt) {
  const std::string outside(100, 'o');
  Ref<Text> piece;
  {
    const auto text = make<Text>(Ref<const Object>(), outside);
    EXPECT_EQ(text->view().data(), outside.data());
    piece = text->piece(10, 80);
  }
  EXPECT_EQ(piece->view().data(), outside.data() + 10);
}

TEST(Text, IsNotCountedWhereItIsKeptForEver) {
  Text kept("kept");  // a release too many would free what was never allocated
  kept.keep_for_ever();
  for (int i = 0; i < 3; ++i) kept.release();
  EXPECT_EQ(Ref<Text>::share(&kept)->view(), "kept");
}

TEST(Text, OutlivesTheTextItIsAPieceOf) {
  Ref<Text> piece;
  {
    const auto whole = make<Text>(std::string(200, 'x'));
    piece = whole->piece(10, 100);
  }
  EXPECT_EQ(piece->view(), std::string(100, 'x'));
}

}  // namespace
}  // namespace baton::jinja
