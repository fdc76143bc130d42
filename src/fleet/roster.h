// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::fleet {

// The source of an announcement. If several announce one server, the higher value counts.
enum class Origin { File, Admin, Etcd };
std::string_view to_string(Origin origin);

// A place that at most one worker fills: a server, for one of its models.
struct Slot {
  std::string model;
  std::string server;  // host:port
  auto operator<=>(const Slot&) const = default;
};

// Role. All announcements of the sources, and which of them count.
// Confinement. The control thread.
// Invariants. The result for a slot follows from the current announcements, in whatever order they
//   came: the one of the highest origin, among those the one with the smallest key.
class Roster {
 public:
  struct Entry {
    Origin origin;
    const std::string& key;  // the source's own
    const model::Announcement& announcement;
  };
  using Announcements = std::map<std::string, model::Announcement, std::less<>>;

  // Each returns the slots for which something may count now that did not before.
  std::vector<Slot> put(Origin origin, std::string_view key, model::Announcement announcement);
  std::vector<Slot> remove(Origin origin, std::string_view key);
  // All that a source says, instead of all that it said.
  std::vector<Slot> replace(Origin origin, Announcements announcements);

  // The current announcement for a slot; nothing if there is none.
  std::optional<Entry> find(const Slot& slot) const;
  const Announcements& of(Origin origin) const { return said_[static_cast<std::size_t>(origin)]; }

 private:
  using Claim = std::pair<Origin, std::string>;
  // The best one first.
  struct Better {
    bool operator()(const Claim& left, const Claim& right) const {
      return left.first != right.first ? left.first > right.first : left.second < right.second;
    }
  };

  Announcements& mutable_of(Origin origin) { return said_[static_cast<std::size_t>(origin)]; }
  void forget(Origin origin, Announcements::iterator said);

  std::array<Announcements, 3> said_;
  std::map<Slot, std::set<Claim, Better>> claims_;
};

Slot slot_of(const model::Announcement& announcement);

}  // namespace baton::fleet
