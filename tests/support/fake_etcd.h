// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "support/fake_engine.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::test {

// Role. As much of an etcd as one who lists and watches sees of it: keys, leases, revisions and a
//   history, behind the JSON gateway. Every prefix is taken for that of all keys.
// Confinement. Driven by the test's thread.
class FakeEtcd {
 public:
  // What becomes of one key; no value: it is deleted.
  struct Change {
    std::string key;
    std::optional<std::string> value;
    std::int64_t lease = 0;
  };

  FakeEtcd();
  ~FakeEtcd();

  model::Endpoint endpoint() const { return server_->endpoint(); }

  void put(std::string key, std::string value, std::int64_t lease = 0);
  void erase(std::string key);
  // Watchers are told of all of it in one message.
  void change(std::vector<Change> changes);
  // The lease runs out, and its keys with it.
  void expire(std::int64_t lease);
  // Watches end, because what they have not seen is gone.
  void compact();
  // Ends its connections and refuses further ones, or no longer.
  void set_away(bool away);
  // Its data directory was replaced by an empty one.
  void wipe();
  // Refuses questions for leases, or answers them again.
  void set_secretive(bool secretive);

  std::size_t listings() const;
  std::size_t lease_questions() const;

 private:
  struct Entry {
    std::string value;
    std::int64_t lease;
    std::int64_t revision;
  };
  struct Message {
    std::int64_t revision;
    std::string line;
  };

  void serve(FakePeer& peer);
  void watch(FakePeer& peer, std::int64_t from);
  // The following require: mutex_ is held.
  std::string range() const;
  std::string time_to_live(std::string_view body);
  std::string event(const Change& change);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  bool away_ = false;
  bool secretive_ = false;
  int era_ = 0;  // a watch of an older one is over
  std::int64_t revision_ = 1;
  std::int64_t compacted_ = 0;
  std::map<std::string, Entry> entries_;
  std::set<std::int64_t> leases_;
  std::vector<Message> history_;
  std::size_t listings_ = 0;
  std::size_t lease_questions_ = 0;
  std::optional<FakeEngine> server_;
};

}  // namespace baton::test
