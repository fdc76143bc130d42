// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "kvcache/view/feeds.h"
#include "support/io_fixture.h"
#include "unit/kvcache/events/fake_publisher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::kvcache {

// Role. What a process has of workers, their caches and their feeds. Its end is the process's.
struct World {
  World(boost::asio::io_context& io, net::Deadlines& deadlines, config::KvIndex settings)
      : tasks(io, [](std::exception_ptr) { ADD_FAILURE() << "an exception escaped"; }),
        caches(settings, metrics, log),
        feeds(
            io, deadlines, tasks, cpu, fleet, caches,
            {.connect_timeout = std::chrono::milliseconds(2'000),
             .idle_per_worker = 1,
             .header_bytes = 65'536},
            [this](model::WorkerId id) -> const engine::Facts* {
              const auto found = facts.find(id);
              return found == facts.end() ? nullptr : &found->second;
            },
            metrics, log) {}

  model::WorkerId announce(model::WorkerSpec spec, const std::string& model = "m") {
    fleet.announce(fleet::Origin::Admin, "key", {.model = model, .spec = std::move(spec)});
    return fleet.members().front().worker->id();
  }
  std::shared_ptr<Cache> cache(std::uint32_t rank = 0) const {
    return caches.find({fleet.members().front().worker->id(), rank});
  }
  FeedHealth health(std::uint32_t rank = 0) const {
    const auto found = cache(rank);
    return found ? found->health() : FeedHealth::None;
  }
  FeedStatus status(std::size_t which = 0) const {
    const auto reports = feeds.reports();
    return which < reports.size() ? reports[which].status.value_or(FeedStatus()) : FeedStatus();
  }
  std::set<std::uint64_t> blocks(std::uint32_t rank = 0) const {
    std::set<std::uint64_t> names;
    if (const auto found = cache(rank))
      caches.index().visit(found->slot(), [&](const auto& held) { names.insert(held.engine); });
    return names;
  }
  // How many of the prompt's tokens the worker is believed to have.
  std::uint32_t overlap(const std::vector<TokenId>& tokens) const {
    const auto overlaps = caches.match(hash_prompt(caches.plan("m"), tokens, ""));
    return overlaps.empty() ? 0 : overlaps.front().blocks.back();
  }

  std::string lines;  // feeds and CPU threads write it: to be read after the end
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, lines};
  telemetry::Registry metrics;
  config::Config config;
  fleet::Fleet fleet{config, metrics, log};
  net::CpuPool cpu{1};
  net::TaskGroup tasks;
  std::map<model::WorkerId, engine::Facts> facts;
  KvCacheView caches;
  Feeds feeds;
};

class FeedsFixture : public baton::test::IoFixture {
 protected:
  ~FeedsFixture() override {
    if (world) end();
  }
  World& begin() {
    world = std::make_unique<World>(io, deadlines, settings);
    world->feeds.start();
    return *world;
  }
  // What was logged.
  std::string end() {
    world->feeds.stop();
    run_until([this] { return world->tasks.running() == 0; });
    world->cpu.join();
    std::string lines = std::move(world->lines);
    world.reset();
    return lines;
  }
  static model::WorkerSpec spec_of(const test::FakePublisher& publisher, bool with_replay = true) {
    model::WorkerSpec spec;
    spec.endpoint = {"10.0.0.1", 8000};
    spec.kv_feed = {.events = publisher.events(),
                    .replay = with_replay ? publisher.replay() : std::string(),
                    .topic = {}};
    return spec;
  }
  void wait_for(FeedHealth health, std::uint32_t rank = 0) {
    run_until([&] { return world->health(rank) == health; });
    EXPECT_EQ(world->health(rank), health);
  }
  // Announces it, and waits until the publisher has a subscriber.
  void listen(test::FakePublisher& publisher, bool with_replay = true) {
    world->announce(spec_of(publisher, with_replay));
    wait_for(FeedHealth::Waiting);
    ASSERT_TRUE(publisher.await_subscriber());
  }

  config::KvIndex settings;
  std::unique_ptr<World> world;
};

}  // namespace baton::kvcache
