// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/admin_source.h"
#include "kvcache/view/kv_cache_view.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace baton::api {

// Role. A fleet and the caches of its workers, filled by hand instead of by feeds.
struct CacheFixture {
  explicit CacheFixture(config::IndexSource source = config::IndexSource::Auto)
      : caches(settings(source), metrics, log) {
    config::Model one;
    one.name = "m";
    one.aliases = {"also-m"};
    config::Model other;
    other.name = "n";
    fleet.configure({one, other});
  }

  std::shared_ptr<fleet::Worker> add_worker(const std::string& name, const std::string& model = "m",
                                            std::uint32_t ranks = 1) {
    model::Announcement worker;
    worker.model = model;
    worker.spec.name = name;
    worker.spec.endpoint = {"127.0.0.1", next_port++};
    worker.spec.role = model::Role::Prefill;
    worker.spec.data_parallel_size = ranks;
    return admin.add(worker)->member.worker;
  }
  // With a feed that is well.
  std::shared_ptr<kvcache::Cache> add_cache(const fleet::Worker& worker, std::uint32_t rank = 0,
                                            const std::string& model = "m",
                                            kvcache::BlockShape shape = {.size = 4}) {
    const kvcache::Holder holder{worker.id(), rank};
    auto cache = std::make_shared<kvcache::Cache>(
        kvcache::Cache::Identity{holder, worker.name(), worker.authority(), model},
        caches.index().join(holder), shape);
    cache->set_health(kvcache::FeedHealth::Live);
    table.caches[holder] = cache;
    auto& shapes = table.plans[model].shapes;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
    caches.publish(table);
    return cache;
  }
  // Its engine has stored the first `blocks` blocks of the prompt. Requires: no bigrams.
  void store(const kvcache::Cache& cache, std::span<const kvcache::TokenId> prompt,
             std::size_t blocks, kvcache::Tier tier = kvcache::Tier::Device,
             const kvcache::Namespace& name_space = {}) {
    const std::uint32_t size = cache.shape().size;
    const std::uint64_t seed = kvcache::seed_of(name_space);
    const auto names = kvcache::sequence_hashes(prompt, cache.shape(), seed);
    std::vector<kvcache::NewBlock> stored;
    for (std::size_t i = 0; i < blocks; ++i) {
      stored.push_back({.engine = names.at(i),
                        .block = kvcache::hash_block(prompt.subspan(i * size, size), seed)});
    }
    caches.index().store(cache.slot(), std::nullopt, stored, tier);
  }

  static config::KvIndex settings(config::IndexSource source) {
    config::KvIndex made;
    made.source = source;
    made.blocks = 5000;
    return made;
  }

  config::Config config;
  telemetry::Registry metrics;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Info, lines};
  fleet::Fleet fleet{config, metrics, log};
  fleet::AdminSource admin{fleet};
  kvcache::KvCacheView caches;
  kvcache::KvCacheView::Table table;
  std::uint16_t next_port = 1;
};

}  // namespace baton::api
