// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/roster.h"

namespace baton::fleet {

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::File:
      return "file";
    case Origin::Admin:
      return "admin";
    case Origin::Etcd:
      break;
  }
  return "etcd";
}

Slot slot_of(const model::Announcement& announcement) {
  return {announcement.model, announcement.spec.endpoint.to_string()};
}

std::vector<Slot> Roster::put(Origin origin, std::string_view key,
                              model::Announcement announcement) {
  Announcements& said = mutable_of(origin);
  Slot slot = slot_of(announcement);
  std::vector<Slot> touched;
  const auto before = said.find(key);
  if (before != said.end()) {
    if (before->second == announcement) return touched;
    touched.push_back(slot_of(before->second));
    forget(origin, before);
  }
  claims_[slot].emplace(origin, key);
  said.emplace(key, std::move(announcement));
  if (touched.empty() || touched.front() != slot) touched.push_back(std::move(slot));
  return touched;
}

std::vector<Slot> Roster::remove(Origin origin, std::string_view key) {
  Announcements& said = mutable_of(origin);
  const auto found = said.find(key);
  if (found == said.end()) return {};
  std::vector<Slot> touched{slot_of(found->second)};
  forget(origin, found);
  return touched;
}

std::vector<Slot> Roster::replace(Origin origin, Announcements announcements) {
  std::set<Slot> touched;
  const auto add = [&touched](const std::vector<Slot>& slots) {
    touched.insert(slots.begin(), slots.end());
  };
  std::vector<std::string> gone;
  for (const auto& [key, said] : of(origin)) {
    if (!announcements.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) add(remove(origin, key));
  for (auto& [key, announcement] : announcements) add(put(origin, key, std::move(announcement)));
  return {touched.begin(), touched.end()};
}

std::optional<Roster::Entry> Roster::find(const Slot& slot) const {
  const auto claims = claims_.find(slot);
  if (claims == claims_.end()) return std::nullopt;
  const Claim& best = *claims->second.begin();
  const auto& [key, announcement] = *of(best.first).find(best.second);
  return Entry{.origin = best.first, .key = key, .announcement = announcement};
}

void Roster::forget(Origin origin, Announcements::iterator said) {
  const auto claims = claims_.find(slot_of(said->second));
  claims->second.erase({origin, said->first});
  if (claims->second.empty()) claims_.erase(claims);
  mutable_of(origin).erase(said);
}

}  // namespace baton::fleet
