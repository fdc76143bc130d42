// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/one_of.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <string>

namespace baton::config {
namespace {

TEST(OneOf, RefusesAnyOtherValueWithTheNearest) {
  const CLI::Validator engine = one_of({"vllm", "sglang", "trtllm"});
  EXPECT_EQ(engine(std::string("sglang")), "");
  EXPECT_EQ(engine(std::string("vlm")), "unknown 'vlm'; did you mean vllm?");
  EXPECT_EQ(engine(std::string("other")), "unknown 'other'; write one of vllm, sglang, trtllm");
  EXPECT_EQ(engine(std::string("")), "unknown ''; write one of vllm, sglang, trtllm");
}

TEST(OneOf, HelpListsTheValues) { EXPECT_EQ(one_of({"on", "off"}).get_description(), "{on,off}"); }

}  // namespace
}  // namespace baton::config
