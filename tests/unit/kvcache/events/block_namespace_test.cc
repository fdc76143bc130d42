// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/block_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace baton::kvcache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = ExtraKey::Kind;

TEST(BlockNamespace, AdaptersAndSaltsMakeTheSeed) {
  BlockNamespace name_space;
  Event event;
  name_space.read(event, true);
  EXPECT_EQ(name_space.seed(), seed_of({}));
  EXPECT_FALSE(name_space.salted());
  event.lora_name = "sql";
  event.cache_salt = "tenant";
  name_space.read(event, false);
  EXPECT_EQ(name_space.seed(), seed_of({.lora = "sql", .salt = "tenant"}));
  EXPECT_TRUE(name_space.salted());
}

TEST(BlockNamespace, ABareTextIsASaltOnlyWhereAPromptBegins) {
  BlockNamespace name_space;
  Event event;
  event.extra_keys = {{.block = 0, .kind = Kind::Text, .bytes = "tenant"},
                      {.block = 1, .kind = Kind::Text, .bytes = "cat.png"}};
  name_space.read(event, true);
  EXPECT_EQ(name_space.seed(), seed_of({.salt = "tenant"}));
  EXPECT_THAT(name_space.multimodal(0), IsEmpty());
  EXPECT_EQ(name_space.multimodal(1).size(), 1U);
  name_space.read(event, false);
  EXPECT_EQ(name_space.seed(), seed_of({}));
  EXPECT_EQ(name_space.multimodal(0).size(), 1U);
}

TEST(BlockNamespace, OfSeveralTextsTheLastIsTheSalt) {
  BlockNamespace name_space;
  Event event;
  event.lora_name = "sql";
  event.extra_keys = {{.bytes = "sql"}, {.bytes = "cat.png"}, {.bytes = "tenant"}};
  name_space.read(event, true);
  EXPECT_EQ(name_space.seed(), seed_of({.lora = "sql", .salt = "tenant"}));
  EXPECT_EQ(name_space.multimodal(0).size(), 1U);
}

TEST(BlockNamespace, ItemsAreNumberedAsDynamoDoes) {
  BlockNamespace name_space;
  Event event;
  const std::string digest = "00000000000000ff" + std::string(48, '7');
  event.extra_keys = {{.block = 2, .kind = Kind::Number, .number = 5},
                      {.block = 0, .kind = Kind::Item, .bytes = digest},
                      {.block = 2, .kind = Kind::Item, .bytes = "00000000000000fe"}};
  name_space.read(event, true);
  EXPECT_FALSE(name_space.plain_tokens());
  EXPECT_THAT(name_space.multimodal(0), ElementsAre(0xffU));
  EXPECT_THAT(name_space.multimodal(1), IsEmpty());
  EXPECT_THAT(name_space.multimodal(2), testing::UnorderedElementsAre(5U, 0xfeU));
  EXPECT_THAT(name_space.multimodal(3), IsEmpty());
}

TEST(BlockNamespace, DifferentItemsHaveDifferentNumbers) {
  BlockNamespace name_space;
  Event event;
  event.extra_keys = {{.block = 0, .kind = Kind::Item, .bytes = "cat"},
                      {.block = 1, .kind = Kind::Item, .bytes = "dog"},
                      {.block = 2, .kind = Kind::Other, .bytes = "\xc4\x01x"}};
  name_space.read(event, true);
  const auto of = [&](std::uint32_t block) { return name_space.multimodal(block).front(); };
  const std::uint64_t cat = of(0);
  const std::uint64_t dog = of(1);
  const std::uint64_t other = of(2);
  EXPECT_NE(cat, dog);
  EXPECT_NE(dog, other);
}

TEST(BlockNamespace, KeepsNothingOfTheEventBefore) {
  BlockNamespace name_space;
  Event event;
  event.lora_id = 4;
  event.extra_keys = {{.bytes = "tenant"}, {.block = 3, .kind = Kind::Number, .number = 1}};
  name_space.read(event, true);
  EXPECT_NE(name_space.seed(), seed_of({.salt = "tenant"})) << "an adapter nobody named";
  name_space.read(Event{}, true);
  EXPECT_EQ(name_space.seed(), seed_of({}));
  EXPECT_TRUE(name_space.plain_tokens());
}

}  // namespace
}  // namespace baton::kvcache
