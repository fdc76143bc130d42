// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/snapshot_keeper.h"

#include "kvcache/view/snapshot_file.h"
#include "support/temporary_directory.h"
#include "unit/kvcache/view/feeds_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace baton::kvcache {
namespace {

using config::IndexSource;
using test::FakePublisher;
using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SnapshotKeeperTest : public FeedsFixture {
 protected:
  SnapshotKeeperTest() {
    settings.snapshot = folder + "/kv-index";
    settings.snapshot_interval = 1h;
  }
  ~SnapshotKeeperTest() override {
    if (world) end();
  }
  // A process that knows of the publisher's blocks, and ends.
  std::string earlier(FakePublisher& publisher) {
    begin();
    listen(publisher);
    publisher.publish({.stored = {1, 2}});
    publisher.publish({.stored = {3}});
    run_until([&] { return world->blocks().size() == 3; });
    wait_for(FeedHealth::Live);
    return end();
  }
  std::vector<HolderSnapshot> saved() const {
    auto holders = read_snapshot_file(settings.snapshot);
    EXPECT_TRUE(holders);
    return holders.value_or(std::vector<HolderSnapshot>());
  }

  const test::TemporaryDirectory directory;
  const std::string folder = directory.path();
};

TEST_F(SnapshotKeeperTest, SavesAtTheEnd) {
  FakePublisher publisher;
  EXPECT_THAT(earlier(publisher), HasSubstr("kv_snapshot_written"));
  const auto holders = saved();
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].worker, SnapshotKeeper::name_of("10.0.0.1:8000", "", "m"));
  EXPECT_EQ(holders[0].position.sequence, 1U);
  EXPECT_EQ(holders[0].shape, (BlockShape{.size = 1}));
  EXPECT_EQ(holders[0].blocks.size(), 3U);
}

TEST_F(SnapshotKeeperTest, SavesNowAndThen) {
  settings.snapshot_interval = 20ms;
  begin();
  FakePublisher publisher;
  listen(publisher);
  publisher.publish({.stored = {1}});
  const auto blocks = [&] {
    const auto holders = read_snapshot_file(settings.snapshot);
    return !holders || holders->empty() ? 0 : holders->front().blocks.size();
  };
  run_until([&] { return blocks() == 1; });
  publisher.publish({.stored = {2}});
  run_until([&] { return blocks() == 2; });
  EXPECT_THAT(world->metrics.render(), HasSubstr("baton_kv_snapshot_age_seconds 0\n"));
}

TEST_F(SnapshotKeeperTest, ARestartGoesOnWhereItWas) {
  FakePublisher publisher;
  earlier(publisher);
  publisher.lose({.stored = {4}, .removed = {1}});
  publisher.keep(2);  // the last one that was known, and what was missed
  begin();
  world->announce(spec_of(publisher));
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(2, 3, 4));
  EXPECT_EQ(world->status().replayed, 1U);
  EXPECT_EQ(world->status().lost, 0U);
  EXPECT_EQ(world->overlap({3}), 1U);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.removed = {3}});
  run_until([&] { return world->blocks().size() == 2; });
  EXPECT_THAT(end(), AllOf(HasSubstr("kv_snapshot_read"), HasSubstr(R"("blocks":3)")));
}

TEST_F(SnapshotKeeperTest, WhereNothingHappenedMeanwhileTheLastBatchIsProofEnough) {
  FakePublisher publisher;
  earlier(publisher);
  begin();
  world->announce(spec_of(publisher));
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2, 3));
  EXPECT_EQ(world->status().replayed, 0U);
  EXPECT_EQ(world->overlap({2}), 1U) << "the shape of blocks is known without an event";
}

TEST_F(SnapshotKeeperTest, OfAnotherEngineAtTheAddressNothingIsBelieved) {
  FakePublisher publisher;
  earlier(publisher);
  publisher.restart();
  publisher.lose({.stored = {7}});
  publisher.lose({.stored = {8}});
  publisher.lose({.stored = {9}});
  begin();
  world->announce(spec_of(publisher));
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(7, 8, 9));
  EXPECT_EQ(world->status().restarts, 1U);
}

TEST_F(SnapshotKeeperTest, WhatNobodyConfirmsIsNotBelieved) {
  FakePublisher publisher;
  earlier(publisher);
  publisher.set_replay(FakePublisher::Replay::Silent);
  begin();
  world->announce(spec_of(publisher));
  run_until([&] { return world->status().state == FeedState::Replaying; });
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2, 3));
  EXPECT_EQ(world->health(), FeedHealth::Waiting);
  EXPECT_EQ(world->overlap({1}), 0U);
  ASSERT_TRUE(publisher.await_subscriber());
  publisher.publish({.stored = {4}});
  run_until([&] { return world->status().last_batch.has_value(); });
  run_for(600ms);
  EXPECT_EQ(world->health(), FeedHealth::Waiting);
  publisher.set_replay(FakePublisher::Replay::Normal);
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(1, 2, 3, 4));
}

TEST_F(SnapshotKeeperTest, AnotherInstanceIsAnotherWorker) {
  FakePublisher publisher;
  earlier(publisher);
  publisher.set_replay(FakePublisher::Replay::Silent);
  begin();
  model::WorkerSpec spec = spec_of(publisher);
  spec.instance = "second";
  world->announce(spec);
  wait_for(FeedHealth::Waiting);
  EXPECT_THAT(world->blocks(), IsEmpty());
  EXPECT_FALSE(world->status().position);
}

TEST_F(SnapshotKeeperTest, WithoutAReplaySocketNothingIsTakenUp) {
  FakePublisher publisher;
  earlier(publisher);
  begin();
  listen(publisher, false);
  EXPECT_THAT(world->blocks(), IsEmpty());
  publisher.publish({.stored = {4}});
  wait_for(FeedHealth::Live);
  EXPECT_THAT(world->blocks(), ElementsAre(4));
}

TEST_F(SnapshotKeeperTest, BlocksOfAnotherSizeAreNotTakenUp) {
  FakePublisher publisher;
  earlier(publisher);
  begin();
  model::WorkerSpec spec = spec_of(publisher);
  spec.block_size = 16;
  world->announce(spec);
  run_until([&] { return world->health() != FeedHealth::None; });
  EXPECT_THAT(world->blocks(), IsEmpty());
}

TEST_F(SnapshotKeeperTest, WhatNobodyHasAskedForYetIsSavedAgain) {
  FakePublisher publisher;
  earlier(publisher);
  const auto before = saved();
  begin();
  run_for(50ms);
  end();
  EXPECT_EQ(saved(), before);
}

TEST_F(SnapshotKeeperTest, AFileThatCannotBeUsedIsSaidAndNoMore) {
  std::ofstream(settings.snapshot) << "something else";
  FakePublisher publisher;
  const std::string lines = earlier(publisher);
  EXPECT_THAT(lines, AllOf(HasSubstr("kv_snapshot_unusable"), HasSubstr("no saved index"),
                           Not(HasSubstr("kv_snapshot_read"))));
  EXPECT_EQ(saved().size(), 1U) << "replaced by one that can";
}

TEST_F(SnapshotKeeperTest, WhatCannotBeWrittenIsSaidAndTriedAgain) {
  settings.snapshot = folder + "/later/kv-index";
  settings.snapshot_interval = 20ms;
  begin();
  run_for(1000ms);
  EXPECT_THAT(world->metrics.render(), Not(HasSubstr("baton_kv_snapshot_age_seconds 0")));
  std::filesystem::create_directory(folder + "/later");
  run_until([&] { return std::filesystem::exists(settings.snapshot); });
  EXPECT_THAT(end(), AllOf(HasSubstr("kv_snapshot_failed"), HasSubstr("No such file"),
                           HasSubstr("kv_snapshot_written")));
}

TEST_F(SnapshotKeeperTest, WhoNeverStartedDoesNotReplaceTheFile) {
  FakePublisher publisher;
  earlier(publisher);
  world = std::make_unique<World>(io, deadlines, settings);
  end();
  EXPECT_EQ(saved().size(), 1U);
}

TEST_F(SnapshotKeeperTest, WhereNobodyIsListenedToThereIsNoFile) {
  settings.source = IndexSource::Decisions;
  begin();
  run_for(20ms);
  end();
  EXPECT_FALSE(std::filesystem::exists(settings.snapshot));
}

}  // namespace
}  // namespace baton::kvcache
