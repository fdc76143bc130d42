// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/feeds.h"
#include "kvcache/view/kv_cache_view.h"
#include "kvcache/view/names.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace baton::kvcache {
namespace {

using Emit = telemetry::Registry::Emit;
using telemetry::Labels;

constexpr double kPercent = 100;

// Ranks of a worker are told of together.
using Sums = std::map<Labels, std::int64_t>;

void emit_all(const Sums& sums, const Emit& emit) {
  for (const auto& [labels, value] : sums) emit(labels, value);
}

}  // namespace

void KvCacheView::add_metrics(telemetry::Registry& metrics) {
  metrics.collect(
      "baton_kv_index_blocks", "Different KV blocks that some worker holds.",
      [this](const Emit& emit) { emit({}, static_cast<std::int64_t>(index_.size().blocks)); });
  metrics.collect(
      "baton_kv_index_memberships", "Pairs of a KV block and a rank that holds it.",
      [this](const Emit& emit) { emit({}, static_cast<std::int64_t>(index_.size().memberships)); });
  metrics.collect("baton_kv_index_bytes", "Memory of the KV index.", [this](const Emit& emit) {
    emit({}, static_cast<std::int64_t>(index_.size().bytes));
  });
  metrics.collect(
      "baton_kv_index_limit", "Most KV blocks that are remembered at once.",
      [this](const Emit& emit) { emit({}, static_cast<std::int64_t>(settings_.blocks)); });
  metrics.collect("baton_kv_index_membership_limit",
                  "Most pairs of a KV block and a rank that are remembered at once.",
                  [this](const Emit& emit) {
                    emit({}, static_cast<std::int64_t>(index_.limits().memberships));
                  });
  metrics.collect(
      "baton_kv_caches", "Ranks of workers, by what is believed of their KV caches.",
      [this](const Emit& emit) {
        Sums sums;
        for (const auto& cache : all()) {
          ++sums[{{"model", cache->identity().model},
                  {"worker", cache->identity().authority},
                  {"source", std::string(to_string(cache->trusted(settings_.source)))}}];
        }
        emit_all(sums, emit);
      });
  metrics.collect("baton_kv_worker_blocks", "KV blocks that a worker's events say it holds.",
                  [this](const Emit& emit) {
                    Sums sums;
                    for (const auto& cache : all()) {
                      if (cache->health() == FeedHealth::None) continue;
                      const auto holding = index_.holding(cache->slot());
                      for (std::size_t tier = 0; tier < kTiers; ++tier) {
                        sums[{{"model", cache->identity().model},
                              {"worker", cache->identity().authority},
                              {"tier", std::string(kTierNames[tier])}}] +=
                            static_cast<std::int64_t>(holding.blocks[tier]);
                      }
                    }
                    emit_all(sums, emit);
                  });
  metrics.collect(
      "baton_kv_worker_bytes", "Memory of the KV index for one worker alone.",
      [this](const Emit& emit) {
        Sums sums;
        for (const auto& cache : all()) {
          if (cache->health() == FeedHealth::None) continue;
          sums[{{"model", cache->identity().model}, {"worker", cache->identity().authority}}] +=
              static_cast<std::int64_t>(index_.holding(cache->slot()).bytes);
        }
        emit_all(sums, emit);
      });
  metrics.collect(
      "baton_kv_predicted_tokens", "Prompt tokens that events said were cached.",
      [this](const Emit& emit) {
        Sums sums;
        for (const auto& cache : all()) {
          sums[{{"model", cache->identity().model}, {"worker", cache->identity().authority}}] +=
              static_cast<std::int64_t>(cache->truth().predicted_tokens);
        }
        emit_all(sums, emit);
      });
  metrics.collect(
      "baton_kv_reported_tokens", "Prompt tokens that engines said were cached.",
      [this](const Emit& emit) {
        Sums sums;
        for (const auto& cache : all()) {
          sums[{{"model", cache->identity().model}, {"worker", cache->identity().authority}}] +=
              static_cast<std::int64_t>(cache->truth().reported_tokens);
        }
        emit_all(sums, emit);
      });
  metrics.collect(
      "baton_kv_feed_wrong_percent", "How wrong a worker's events were lately.",
      [this](const Emit& emit) {
        Sums worst;
        for (const auto& cache : all()) {
          if (cache->health() == FeedHealth::None) continue;
          auto& value =
              worst[{{"model", cache->identity().model}, {"worker", cache->identity().authority}}];
          value = std::max<std::int64_t>(value, std::lround(cache->truth().error * kPercent));
        }
        emit_all(worst, emit);
      });
}

void Feeds::add_metrics(telemetry::Registry& metrics) {
  using Identity = Cache::Identity;
  // Sums up `entry` over the ranks' feeds.
  const auto sums = [this](const Emit& emit, const auto& entry) {
    Sums all;
    for (const Report& report : reports()) {
      if (!report.status) continue;
      const auto [labels, value] = entry(report.cache->identity(), *report.status);
      all[labels] += static_cast<std::int64_t>(value);
    }
    emit_all(all, emit);
  };
  metrics.collect("baton_kv_feeds", "Ranks whose KV events are listened to, by state.",
                  [this](const Emit& emit) {
                    Sums all;
                    for (const Report& report : reports()) {
                      if (!report.status) continue;
                      ++all[{{"model", report.cache->identity().model},
                             {"worker", report.cache->identity().authority},
                             {"state", std::string(to_string(report.cache->health()))}}];
                    }
                    emit_all(all, emit);
                  });
  metrics.collect("baton_kv_feed_batches", "Batches of KV events read.", [=](const Emit& emit) {
    sums(emit, [](const Identity& of, const FeedStatus& status) {
      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}}, status.tally.batches);
    });
  });
  metrics.collect(
      "baton_kv_feed_gaps", "Gaps found in a feed of KV events.", [=](const Emit& emit) {
        sums(emit, [](const Identity& of, const FeedStatus& status) {
          return std::pair(Labels{{"model", of.model}, {"worker", of.authority}}, status.gaps);
        });
      });
  metrics.collect("baton_kv_feed_lost", "Batches of KV events that could not be repeated.",
                  [=](const Emit& emit) {
                    sums(emit, [](const Identity& of, const FeedStatus& status) {
                      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}},
                                       status.lost);
                    });
                  });
  metrics.collect("baton_kv_feed_replayed", "Batches of KV events that were asked for again.",
                  [=](const Emit& emit) {
                    sums(emit, [](const Identity& of, const FeedStatus& status) {
                      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}},
                                       status.replayed);
                    });
                  });
  metrics.collect("baton_kv_feed_duplicates", "Batches of KV events that came more than once.",
                  [=](const Emit& emit) {
                    sums(emit, [](const Identity& of, const FeedStatus& status) {
                      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}},
                                       status.duplicates);
                    });
                  });
  metrics.collect("baton_kv_feed_malformed_batches", "Batches of KV events that cannot be read.",
                  [=](const Emit& emit) {
                    sums(emit, [](const Identity& of, const FeedStatus& status) {
                      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}},
                                       status.tally.malformed_batches);
                    });
                  });
  metrics.collect("baton_kv_feed_sequence", "Number of the last batch of KV events applied.",
                  [this](const Emit& emit) {
                    Sums all;
                    for (const Report& report : reports()) {
                      if (!report.status || !report.status->position) continue;
                      const Identity& of = report.cache->identity();
                      all[{{"model", of.model},
                           {"worker", of.authority},
                           {"rank", std::to_string(of.holder.rank)}}] =
                          static_cast<std::int64_t>(report.status->position->sequence);
                    }
                    emit_all(all, emit);
                  });
  metrics.collect("baton_kv_feed_restarts", "Restarts of engines seen in their KV events.",
                  [=](const Emit& emit) {
                    sums(emit, [](const Identity& of, const FeedStatus& status) {
                      return std::pair(Labels{{"model", of.model}, {"worker", of.authority}},
                                       status.restarts);
                    });
                  });
  metrics.collect("baton_kv_feed_lag_milliseconds", "How late the last KV events came.",
                  [this](const Emit& emit) {
                    Sums all;
                    for (const Report& report : reports()) {
                      if (!report.status || !report.status->lag) continue;
                      auto& value = all[{{"model", report.cache->identity().model},
                                         {"worker", report.cache->identity().authority}}];
                      value = std::max<std::int64_t>(
                          value, std::lround(report.status->lag->count() * 1000));
                    }
                    emit_all(all, emit);
                  });
  metrics.collect("baton_kv_feed_skipped", "KV events, or blocks of them, that were left out.",
                  [this](const Emit& emit) {
                    Sums all;
                    for (const Report& report : reports()) {
                      if (!report.status) continue;
                      const auto& skipped = report.status->tally.skipped;
                      for (std::size_t reason = 0; reason < skipped.size(); ++reason) {
                        if (skipped[reason] == 0) continue;
                        all[{{"model", report.cache->identity().model},
                             {"worker", report.cache->identity().authority},
                             {"reason", std::string(to_string(static_cast<Skipped>(reason)))}}] +=
                            static_cast<std::int64_t>(skipped[reason]);
                      }
                    }
                    emit_all(all, emit);
                  });
}

}  // namespace baton::kvcache
