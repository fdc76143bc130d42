// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/load_notifier.h"

#include "unit/fleet/fleet_fixture.h"
#include "unit/scheduling/book_worker.h"

namespace baton::fleet {
namespace {

struct Listener : LoadListener {
  explicit Listener(int& rung) : rung_(rung) {}
  void load_fell() override { ++rung_; }
  int& rung_;
};

TEST(LoadNotifier, RingsForWhoeverListens) {
  LoadNotifier load_notifier;
  load_notifier.ring();
  int first_rung = 0;
  int second_rung = 0;
  auto first = std::make_shared<Listener>(first_rung);
  const auto second = std::make_shared<Listener>(second_rung);
  load_notifier.add(first);
  load_notifier.ring();
  load_notifier.add(second);
  load_notifier.ring();
  first.reset();  // it does not listen any more
  load_notifier.ring();
  EXPECT_EQ(first_rung, 2);
  EXPECT_EQ(second_rung, 2);
}

struct LoadNotifierTest : FleetTest {};

TEST_F(LoadNotifierTest, OneListensForEachPool) {
  add_model("m", {worker(1, model::Role::Aggregated)});
  EXPECT_EQ(pool().listener(), nullptr);
  int rung = 0;
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_shared<Listener>(rung);
  };
  const auto first = pool().listener(make);
  EXPECT_EQ(pool().listener(make), first);
  EXPECT_EQ(made, 1);
  {
    const auto booking = test::book_worker(workers(model::Role::Aggregated), {}, no_dice);
  }
  EXPECT_EQ(rung, 1);
}

// Who waits for workers by the old options hears of what is served by the new ones.
TEST_F(LoadNotifierTest, OutlivesAChangeOfTheModelsOptions) {
  add_model("m", {worker(1, model::Role::Aggregated)});
  const auto before = model().choose({}, no_dice);
  int rung = 0;
  before->listener([&] { return std::make_shared<Listener>(rung); });
  config.models[0].retries += 1;
  fleet().configure(config.models);
  ASSERT_NE(&pool(), before.get());
  EXPECT_EQ(pool().listener(), nullptr);
  rung = 0;
  {
    const auto booking = test::book_worker(workers(model::Role::Aggregated), {}, no_dice);
  }
  EXPECT_EQ(rung, 1);
}

}  // namespace
}  // namespace baton::fleet
