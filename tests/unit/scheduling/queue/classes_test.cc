// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/queue/classes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace baton::scheduling {
namespace {

config::QueueClass of(std::string name, std::string family = {}, std::string bucket = {}) {
  config::QueueClass made;
  made.name = std::move(name);
  made.family = std::move(family);
  made.bucket = std::move(bucket);
  return made;
}

config::Queue queue(std::vector<config::QueueClass> classes) {
  config::Queue made;
  made.classes = std::move(classes);
  return made;
}

config::Queue families() {
  config::Queue made =
      queue({of("vip"), of("batch-long", "batch", "long"), of("chat-short", "chat", "short"),
             of("chat-long", "chat", "long"), of("chat-huge", "chat", "huge"),
             of("batch-short", "batch", "short"), of("batch-huge", "batch", "huge")});
  made.default_family = "chat";
  made.buckets = {{0, "short"}, {1000, "long"}, {50000, "huge"}};
  return made;
}

TEST(Classes, AClassWithoutFamilyIsAskedForByItsName) {
  const Classes classes(families());
  EXPECT_EQ(classes.resolve("vip", 0), 0U);
  EXPECT_EQ(classes.resolve("vip", 1'000'000), 0U);
}

TEST(Classes, AFamilyHasAClassForEachBucketOfNewTokens) {
  const Classes classes(families());
  EXPECT_EQ(classes.resolve("batch", 0), 5U);
  EXPECT_EQ(classes.resolve("batch", 999), 5U);
  EXPECT_EQ(classes.resolve("batch", 1000), 1U);
  EXPECT_EQ(classes.resolve("batch", 49'999), 1U);
  EXPECT_EQ(classes.resolve("batch", 50'000), 6U);
}

TEST(Classes, WhoAsksForNothingKnownIsOfTheDefaultFamily) {
  const Classes classes(families());
  EXPECT_EQ(classes.resolve("", 10), 2U);
  EXPECT_EQ(classes.resolve("no such", 1000), 3U);
  // Of a family only by the family's name: the bucket is not the client's to choose.
  EXPECT_EQ(classes.resolve("chat-short", 60'000), 4U);
}

TEST(Classes, WithoutFamiliesTheFirstClassIsForAllWhoNameNone) {
  const Classes classes(queue({of("first"), of("second")}));
  EXPECT_EQ(classes.resolve("", 10), 0U);
  EXPECT_EQ(classes.resolve("third", 10), 0U);
  EXPECT_EQ(classes.resolve("second", 10), 1U);
}

}  // namespace
}  // namespace baton::scheduling
