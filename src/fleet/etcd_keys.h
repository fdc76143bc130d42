// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "etcd/entry.h"
#include "fleet/fleet.h"
#include "fleet/health.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace baton::fleet {

// Role. The workers that etcd's keys announce, and those that still count after their key has gone:
//   healthy workers stay when etcd lets leases run out.
// Confinement. The control thread.
// Invariants. A value that cannot be read changes nothing, and touches no other key. A worker that
//   was removed on purpose goes at once; one that only lost its lease lingers, unless another key
//   announces the same server. All of one call reaches the fleet as one change.
class EtcdKeys {
 public:
  // `linger` 0: no worker lingers.
  EtcdKeys(Fleet& fleet, std::chrono::milliseconds linger, telemetry::Registry& metrics,
           telemetry::Logger& log);

  // All there is now. `unsure`: etcd's data was replaced by older data, so that a key which is
  // missing may have been lost rather than deleted.
  void replace(const std::vector<etcd::KeyValue>& entries, bool unsure);
  // Applies the events in this order.
  void apply(const std::vector<etcd::Event>& events);

  // Keys that have gone, and the lease they had. If the lease still exists the keys were deleted on
  // purpose, and the caller calls withdraw.
  struct UnconfirmedLease {
    std::int64_t lease;
    std::vector<std::string> keys;
  };
  std::optional<UnconfirmedLease> take_unconfirmed();
  std::size_t unconfirmed() const { return unconfirmed_.size(); }
  void forget_unconfirmed() { unconfirmed_.clear(); }
  // Those of its keys that have not come back.
  void withdraw(const UnconfirmedLease& unconfirmed);

  // Withdraws workers that have lingered for long enough, and those that are gone. `away`: etcd
  // cannot be reached, so no worker can come back, and the time does not count.
  void tend(Time now, bool away);

  std::size_t workers() const { return keys_.size(); }  // lingering ones included
  std::size_t lingering() const { return lingering_.size(); }
  std::size_t refused() const { return refused_.size(); }

 private:
  struct Key {
    Slot slot;
    std::size_t digest = 0;  // of the value that counts
    std::int64_t lease = 0;
    bool draining = false;
    std::optional<Time> until;  // it lingers
  };
  using Keys = std::map<std::string, Key, std::less<>>;

  void put(const etcd::KeyValue& entry, Fleet::Changes& changes);
  void leave(Keys::iterator key, bool unsure, Fleet::Changes& changes);
  void drop(Keys::iterator key, Fleet::Changes& changes);
  // The key is there: it does not linger, and no other key lingers in its place.
  void settle(Keys::iterator key, Fleet::Changes& changes);
  void refuse(const etcd::KeyValue& entry, std::string_view problem, bool kept);
  void drop_key(Keys::iterator key);
  void commit(Fleet::Changes changes, std::size_t lingered_before);

  Fleet& fleet_;
  const std::chrono::milliseconds linger_;
  telemetry::Logger& log_;
  telemetry::Counter& puts_;
  telemetry::Counter& deletes_;
  telemetry::Gauge& lingering_now_;
  telemetry::Gauge& refused_now_;
  Keys keys_;
  std::map<Slot, std::set<std::string>> at_;                      // which keys stand for a server
  std::set<std::string, std::less<>> lingering_;                  // keys that have gone
  std::map<std::string, std::size_t, std::less<>> refused_;       // digests of what cannot be read
  std::map<std::int64_t, std::vector<std::string>> unconfirmed_;  // by lease
};

}  // namespace baton::fleet
