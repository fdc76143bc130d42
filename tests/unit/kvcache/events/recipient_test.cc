// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/recipient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::kvcache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

FeedSpec feed(std::string authority, std::string topic) {
  FeedSpec spec;
  spec.authority = std::move(authority);
  spec.topic = std::move(topic);
  return spec;
}

TEST(Recipient, AWildcardForHostIsBound) {
  for (const char* endpoint : {"tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557"})
    EXPECT_TRUE(is_bound(endpoint)) << endpoint;
  for (const char* endpoint : {"tcp://10.0.0.1:5557", "tcp://[::1]:5557", "tcp://worker-0:5557",
                               "ipc:///tmp/events", "tcp://", ""})
    EXPECT_FALSE(is_bound(endpoint)) << endpoint;
}

TEST(Recipient, ATopicThatNamesAWorkerMeansThatWorker) {
  const FeedSpec a = feed("10.0.0.1:8000", "kv@");
  const FeedSpec b = feed("10.0.0.11:8000", "kv@");
  const FeedSpec c = feed("10.0.0.1:80", "");
  const std::vector<const FeedSpec*> feeds = {&a, &b, &c};
  EXPECT_THAT(meant_by_topic("kv@10.0.0.1:8000@llama", feeds), ElementsAre(&a));
  EXPECT_THAT(meant_by_topic("kv@10.0.0.11:8000@llama", feeds), ElementsAre(&b));
  EXPECT_THAT(meant_by_topic("kv@10.0.0.1:80@llama", feeds), ElementsAre(&c));
  EXPECT_THAT(meant_by_topic("kv@10.0.0.9:8000@llama", feeds), IsEmpty());
}

TEST(Recipient, OtherTopicsMeanThoseWhoSubscribedToMostOfThem) {
  const FeedSpec a = feed("10.0.0.1:8000", "pool/a");
  const FeedSpec b = feed("10.0.0.2:8000", "pool/");
  const FeedSpec rank_1 = feed("10.0.0.1:8000", "pool/a");
  const std::vector<const FeedSpec*> feeds = {&a, &b, &rank_1};
  EXPECT_THAT(meant_by_topic("pool/a", feeds), ElementsAre(&a, &rank_1));
  EXPECT_THAT(meant_by_topic("pool/c", feeds), ElementsAre(&b));
  EXPECT_THAT(meant_by_topic("other", feeds), IsEmpty());
}

TEST(Recipient, AModelWithAnAtSignIsNoWorker) {
  const FeedSpec a = feed("10.0.0.1:8000", "");
  const std::vector<const FeedSpec*> feeds = {&a};
  EXPECT_THAT(meant_by_topic("kv@llama", feeds), ElementsAre(&a));
}

}  // namespace
}  // namespace baton::kvcache
