// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/view/snapshot_keeper.h"

#include "kvcache/view/snapshot_file.h"
#include "net/await.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ranges>
#include <span>

namespace baton::kvcache {
namespace {

using boost::asio::awaitable;
using Emit = telemetry::Registry::Emit;

// How long a worker's part is kept for it.
constexpr std::chrono::minutes kUnclaimed{10};

std::int64_t count_blocks(std::span<const HolderSnapshot> holders) {
  std::size_t blocks = 0;
  for (const HolderSnapshot& holder : holders) blocks += holder.blocks.size();
  return static_cast<std::int64_t>(blocks);
}

// The feeds of a thread wait meanwhile: they are listed one at a time, and put in order afterwards.
void list(const Index& index, const SnapshotKeeper::Source& source,
          std::vector<HolderSnapshot>& holders) {
  std::optional<FeedStatus> at;
  Index::Listing listing;
  source.thread->while_quiet(source.holder, [&](const FeedStatus* status) {
    // A holder whose feed was closed meanwhile may have lost its slot.
    if (status == nullptr || !status->position || !status->resumable) return;
    at = *status;
    listing = index.list(source.slot);
  });
  if (!at) return;
  holders.push_back(
      {.worker = source.worker,
       .rank = source.holder.rank,
       .position = {.sequence = at->position->sequence, .payload_hash = at->position->payload_hash},
       .shape = at->shape.value_or(source.shape),
       .blocks = list_blocks(listing)});
}

}  // namespace

SnapshotKeeper::SnapshotKeeper(boost::asio::io_context& io, net::CpuPool& cpu, const Index& index,
                               const config::KvIndex& settings, Sources sources,
                               telemetry::Registry& metrics, telemetry::Logger& log)
    : cpu_(cpu),
      index_(index),
      settings_(settings),
      sources_(std::move(sources)),
      log_(log),
      timer_(io) {
  metrics.collect("baton_kv_snapshot_age_seconds", "Since the KV index was last saved.",
                  [this](const Emit& emit) {
                    const Clock::time_point at = written_at_.load();
                    if (at == Clock::time_point()) return;
                    const auto age = std::chrono::floor<std::chrono::seconds>(Clock::now() - at);
                    emit({}, age.count());
                  });
}

std::string SnapshotKeeper::name_of(std::string_view authority, std::string_view instance,
                                    std::string_view model) {
  return fmt::format("{}\n{}\n{}", authority, instance, model);
}

void SnapshotKeeper::read() {
  read_at_ = Clock::now();
  auto holders = read_snapshot_file(settings_.snapshot);
  if (!holders) {
    log_.warning("kv_snapshot_unusable",
                 {{"file", settings_.snapshot}, {"error", holders.error().message()}});
    return;
  }
  if (holders->empty()) return;
  log_.info("kv_snapshot_read", {{"file", settings_.snapshot},
                                 {"holders", static_cast<std::int64_t>(holders->size())},
                                 {"blocks", count_blocks(*holders)}});
  for (HolderSnapshot& holder : *holders) {
    std::pair key(holder.worker, holder.rank);
    unclaimed_[std::move(key)] = std::make_shared<const HolderSnapshot>(std::move(holder));
  }
}

std::shared_ptr<const HolderSnapshot> SnapshotKeeper::claim(const std::string& worker,
                                                            std::uint32_t rank) {
  auto found = unclaimed_.extract({worker, rank});
  if (found.empty()) return nullptr;
  return std::move(found.mapped());
}

awaitable<void> SnapshotKeeper::run() {
  while (!stopped_) {
    timer_.expires_after(settings_.snapshot_interval);
    co_await timer_.async_wait(net::kAwait);
    if (stopped_) break;
    if (Clock::now() - *read_at_ > kUnclaimed) unclaimed_.clear();
    co_await save();
  }
}

awaitable<void> SnapshotKeeper::save() {
  if (!read_at_) co_return;  // the file's contents are unknown
  auto work = [this, sources = sources_(), unclaimed = unclaimed_] {
    return save(sources, unclaimed);
  };
  co_await cpu_.run(std::move(work));
}

void SnapshotKeeper::own_file(bool own) {
  const locks::Lock lock(saving_);
  own_file_ = own;
}

void SnapshotKeeper::stop() {
  stopped_ = true;
  timer_.cancel();
  if (read_at_) save(sources_(), unclaimed_);
  own_file(false);
}

bool SnapshotKeeper::save(const std::vector<Source>& sources, const Unclaimed& unclaimed) {
  const locks::Lock lock(saving_);
  if (!own_file_) return false;
  std::vector<HolderSnapshot> holders;
  for (const Source& source : sources) list(index_, source, holders);
  for (const auto& holder : unclaimed | std::views::values) holders.push_back(*holder);
  const auto bytes = write_snapshot_file(settings_.snapshot, holders);
  if (!bytes) {
    log_.warning("kv_snapshot_failed",
                 {{"file", settings_.snapshot}, {"error", bytes.error().message()}});
    return false;
  }
  written_at_ = Clock::now();
  log_.debug("kv_snapshot_written", {{"file", settings_.snapshot},
                                     {"holders", static_cast<std::int64_t>(holders.size())},
                                     {"blocks", count_blocks(holders)},
                                     {"bytes", static_cast<std::int64_t>(*bytes)}});
  return true;
}

}  // namespace baton::kvcache
