// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/value.h"

#include "unit/libs/jinja/rendering.h"

#include <thread>

namespace baton::jinja {
namespace {

using testing::HasSubstr;

TEST(Value, IsUndefinedUnlessToldOtherwise) {
  EXPECT_TRUE(Value().is_undefined());
  EXPECT_TRUE(Value::none().is_none());
  EXPECT_EQ(Value(true).kind(), Kind::Bool);
  EXPECT_EQ(Value(7).as_int(), 7);
  EXPECT_EQ(Value(1.5).as_float(), 1.5);
  EXPECT_EQ(Value("text").as_string(), "text");
  EXPECT_EQ(Value(std::string("text")).as_string(), "text");
  EXPECT_EQ(Value::big_integer("123456789012345678901234567890").as_string(),
            "123456789012345678901234567890");
}

TEST(Value, CopiesShareTheText) {
  const Value one(std::string(1000, 'x'));
  const Value two = one;
  EXPECT_EQ(one.as_string().data(), two.as_string().data());
}

TEST(Value, IsAssignedAndMoved) {
  Value value("a long text that does not fit into a short one");
  Value other = std::move(value);
  EXPECT_EQ(other.as_string(), "a long text that does not fit into a short one");
  other = Value(List{Value(1), Value("x")});
  EXPECT_EQ(other.as_list().size(), 2U);
  const Value& same = other;
  other = same;
  EXPECT_EQ(other.as_list()[1].as_string(), "x");
}

TEST(Value, CountsHowDeepContainersNest) {
  EXPECT_EQ(Value("x").nesting(), 0U);
  EXPECT_EQ(Value(List{}).nesting(), 1U);
  Dict dict;
  dict.set("list", Value(List{Value(List{})}));
  EXPECT_EQ(Value(dict).nesting(), 3U);
}

TEST(Value, SaysWhatIsUndefinedInJinjasWords) {
  EXPECT_EQ(Value::missing(make<Text>("x")).undefined_message(), "'x' is undefined");
  EXPECT_EQ(Value::missing(Value("x"), Kind::Dict).undefined_message(),
            "'dict object' has no attribute 'x'");
  EXPECT_EQ(Value::missing(Value(3), Kind::List).undefined_message(),
            "list object has no element 3");
}

TEST(Value, IsSharedAcrossThreads) {
  const Value shared(List{Value("one"), Value("two")});
  const auto copy_often = [&] {
    for (int i = 0; i < 10'000; ++i) {
      const Value copy = shared.as_list()[static_cast<std::size_t>(i % 2)];
      ASSERT_TRUE(copy.is_string());
    }
  };
  std::thread other(copy_often);
  copy_often();
  other.join();
}

TEST(Dict, KeepsTheOrderOfFirstInsertion) {
  Dict dict;
  dict.set("b", 1);
  dict.set("a", 2);
  dict.set(std::string("b"), 3);
  ASSERT_EQ(dict.size(), 2U);
  EXPECT_EQ(dict.entries()[0].key.as_string(), "b");
  EXPECT_EQ(dict.find("b")->as_int(), 3);
  EXPECT_EQ(dict.find("c"), nullptr);
}

TEST(Dict, FindsAmongMany) {
  Dict dict;
  for (int i = 0; i < 1000; ++i) dict.set("key" + std::to_string(i), i);
  for (int i = 0; i < 1000; ++i) {
    const Value* found = dict.find("key" + std::to_string(i));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->as_int(), i);
  }
  EXPECT_EQ(dict.find("key1000"), nullptr);
  dict.set(Value(1), "one");
  dict.set(Value(true), "true");
  dict.set(Value(1.0), "float");
  EXPECT_EQ(dict.size(), 1001U);
  EXPECT_EQ(dict.find(Value(1))->as_string(), "float");
}

}  // namespace
}  // namespace baton::jinja
