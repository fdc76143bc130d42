// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/tokens.h"

#include <gtest/gtest.h>

namespace baton::model {
namespace {

TEST(Tokens, WhoTokenizesIsReadAsItIsWritten) {
  for (const Tokenize value : {Tokenize::Local, Tokenize::Engine, Tokenize::Off})
    EXPECT_EQ(parse_tokenize(to_string(value)), value);
  EXPECT_EQ(parse_tokenize("Local"), std::nullopt);
  EXPECT_EQ(parse_tokenize(""), std::nullopt);
}

TEST(Tokens, WhetherIdsAreSent) {
  EXPECT_EQ(parse_send_token_ids("auto"), SendTokenIds::Auto);
  EXPECT_EQ(parse_send_token_ids("always"), SendTokenIds::Always);
  EXPECT_EQ(parse_send_token_ids("never"), SendTokenIds::Never);
  EXPECT_EQ(parse_send_token_ids("yes"), std::nullopt);
}

}  // namespace
}  // namespace baton::model
