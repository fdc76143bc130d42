// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "kvcache/events/feed_thread.h"
#include "kvcache/index/index.h"
#include "kvcache/index/snapshot.h"
#include "kvcache/view/cache.h"
#include "libs/locks/mutex.h"
#include "net/cpu_pool.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::kvcache {

// Role. Periodically saves the caches of the subscribed feeds, and holds the snapshot of the
//   previous process.
// Confinement. The control thread; saving is done on a CPU thread.
// Lifetime. The index and the feeds' threads until stop() has returned; itself until run() has.
// Invariants. A holder is saved with the position of its feed of the same moment. An entry of the
//   previous snapshot that is not claimed yet is saved again.
class SnapshotKeeper {
 public:
  // A feed to be saved.
  struct Source {
    FeedThread* thread;
    Holder holder;
    Slot slot;
    BlockShape shape;    // where its events have not told
    std::string worker;  // see name_of()
  };
  using Sources = std::function<std::vector<Source>()>;

  SnapshotKeeper(boost::asio::io_context& io, net::CpuPool& cpu, const Index& index,
                 const config::KvIndex& settings, Sources sources, telemetry::Registry& metrics,
                 telemetry::Logger& log);

  // A worker's name in the file: another instance at the same address is another worker.
  static std::string name_of(std::string_view authority, std::string_view instance,
                             std::string_view model);

  void read();
  // Its part of the snapshot, once; null if there is none.
  std::shared_ptr<const HolderSnapshot> claim(const std::string& worker, std::uint32_t rank);

  bool has_unclaimed() const { return !unclaimed_.empty(); }

  boost::asio::awaitable<void> run();
  // Now, whatever the interval.
  boost::asio::awaitable<void> save();
  // Whether the file is this process' to write: it is another's before that one has handed over,
  // and after this one has. Returns when nothing is being written.
  void own_file(bool own);
  // Saves for the last time, before it returns; not if the file was not read, for then its contents
  // are unknown.
  void stop();

 private:
  using Unclaimed =
      std::map<std::pair<std::string, std::uint32_t>, std::shared_ptr<const HolderSnapshot>>;

  bool save(const std::vector<Source>& sources, const Unclaimed& unclaimed);

  net::CpuPool& cpu_;
  const Index& index_;
  const config::KvIndex& settings_;
  Sources sources_;
  telemetry::Logger& log_;
  boost::asio::steady_timer timer_;
  Unclaimed unclaimed_;
  std::optional<Clock::time_point> read_at_;
  bool stopped_ = false;
  locks::Mutex saving_;
  bool own_file_ GUARDED_BY(saving_) = true;  // false also where the feeds' threads may be gone
  std::atomic<Clock::time_point> written_at_{Clock::time_point()};
};

}  // namespace baton::kvcache
