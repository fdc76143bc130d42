// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/etcd_keys.h"

#include "config/announcement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::fleet {
namespace {

telemetry::Counter& events(telemetry::Registry& metrics, std::string kind) {
  return metrics.counter("baton_etcd_events_total", "Changes of keys that etcd told of.",
                         {{"kind", std::move(kind)}});
}

std::string in_words(const std::vector<config::Problem>& problems) {
  std::string words = problems.front().to_string();
  if (problems.size() > 1) words += fmt::format(" (and {} more)", problems.size() - 1);
  return words;
}

bool is_away(Condition condition) {
  return condition == Condition::Unreachable || condition == Condition::Ejected;
}

}  // namespace

EtcdKeys::EtcdKeys(Fleet& fleet, std::chrono::milliseconds linger, telemetry::Registry& metrics,
                   telemetry::Logger& log)
    : fleet_(fleet),
      linger_(linger),
      log_(log),
      puts_(events(metrics, "put")),
      deletes_(events(metrics, "delete")),
      lingering_now_(metrics.gauge("baton_etcd_lingering",
                                   "Workers that serve on although their lease has run out.")),
      refused_now_(metrics.gauge("baton_etcd_entries_refused",
                                 "Keys of etcd whose value cannot be used.")) {}

void EtcdKeys::replace(const std::vector<etcd::KeyValue>& entries, bool unsure) {
  Fleet::Changes changes;
  const std::size_t lingered = lingering_.size();
  std::set<std::string_view> there;
  for (const etcd::KeyValue& entry : entries) {
    there.insert(entry.key);
    put(entry, changes);
  }
  std::erase_if(refused_, [&there](const auto& one) { return !there.contains(one.first); });
  for (auto key = keys_.begin(); key != keys_.end();) {
    const auto next = std::next(key);
    if (!there.contains(key->first)) leave(key, unsure, changes);
    key = next;
  }
  commit(std::move(changes), lingered);
}

void EtcdKeys::apply(const std::vector<etcd::Event>& events) {
  Fleet::Changes changes;
  const std::size_t lingered = lingering_.size();
  for (const etcd::Event& event : events) {
    if (event.kind == etcd::Event::Kind::Put) {
      puts_.add();
      put(event.entry, changes);
      continue;
    }
    deletes_.add();
    refused_.erase(event.entry.key);
    const auto key = keys_.find(event.entry.key);
    if (key != keys_.end()) leave(key, false, changes);
  }
  commit(std::move(changes), lingered);
}

void EtcdKeys::put(const etcd::KeyValue& entry, Fleet::Changes& changes) {
  const std::size_t digest = std::hash<std::string>{}(entry.value);
  auto known = keys_.find(entry.key);
  if (known != keys_.end()) {
    known->second.lease = entry.lease;
    settle(known, changes);
    if (known->second.digest == digest) {
      refused_.erase(entry.key);
      return;
    }
  }
  // A listing repeats what was refused before.
  const auto refused = refused_.find(entry.key);
  if (refused != refused_.end() && refused->second == digest) return;
  auto announcement = config::parse_announcement(entry.value, "value");
  if (!announcement) {
    refused_.insert_or_assign(entry.key, digest);
    return refuse(entry, in_words(announcement.error()), known != keys_.end());
  }
  refused_.erase(entry.key);
  if (known != keys_.end()) drop_key(known);
  known = keys_
              .insert_or_assign(entry.key, Key{.slot = slot_of(*announcement),
                                               .digest = digest,
                                               .lease = entry.lease,
                                               .draining = announcement->draining,
                                               .until = {}})
              .first;
  at_[known->second.slot].insert(entry.key);
  settle(known, changes);
  changes.insert_or_assign(entry.key, *std::move(announcement));
}

void EtcdKeys::settle(Keys::iterator key, Fleet::Changes& changes) {
  if (std::exchange(key->second.until, std::nullopt)) lingering_.erase(key->first);
  const std::set<std::string>& here = at_.at(key->second.slot);
  if (here.size() == 1) return;
  // A copy: drop() changes the set.
  for (const std::string& other : std::set<std::string>(here)) {
    if (lingering_.contains(other)) drop(keys_.find(other), changes);
  }
}

void EtcdKeys::leave(Keys::iterator key, bool unsure, Fleet::Changes& changes) {
  Key& gone = key->second;
  if (gone.until) return;
  const bool replaced = std::ranges::any_of(at_.at(gone.slot), [&](const std::string& other) {
    return other != key->first && !lingering_.contains(other);
  });
  const bool meant = gone.draining || (gone.lease == 0 && !unsure);
  if (meant || replaced || linger_.count() == 0) return drop(key, changes);
  gone.until = Clock::now() + linger_;
  lingering_.insert(key->first);
  if (gone.lease != 0) unconfirmed_[gone.lease].push_back(key->first);
}

void EtcdKeys::drop(Keys::iterator key, Fleet::Changes& changes) {
  drop_key(key);
  lingering_.erase(key->first);
  changes.insert_or_assign(key->first, std::nullopt);
  keys_.erase(key);
}

void EtcdKeys::drop_key(Keys::iterator key) {
  const auto here = at_.find(key->second.slot);
  here->second.erase(key->first);
  if (here->second.empty()) at_.erase(here);
}

void EtcdKeys::refuse(const etcd::KeyValue& entry, std::string_view problem, bool kept) {
  log_.warning("etcd_entry_refused",
               {{"key", entry.key}, {"problem", problem}, {"value_before_holds", kept}});
}

std::optional<EtcdKeys::UnconfirmedLease> EtcdKeys::take_unconfirmed() {
  if (unconfirmed_.empty()) return std::nullopt;
  auto first = unconfirmed_.extract(unconfirmed_.begin());
  return UnconfirmedLease{first.key(), std::move(first.mapped())};
}

void EtcdKeys::withdraw(const UnconfirmedLease& unconfirmed) {
  Fleet::Changes changes;
  for (const std::string& name : unconfirmed.keys) {
    const auto key = keys_.find(name);
    // It may have come back meanwhile, and gone again with another lease.
    if (key != keys_.end() && key->second.until && key->second.lease == unconfirmed.lease)
      drop(key, changes);
  }
  commit(std::move(changes), lingering_.size());
}

void EtcdKeys::tend(Time now, bool away) {
  std::vector<std::pair<std::string, std::string_view>> over;
  for (const Fleet::Member& one : fleet_.members()) {
    if (one.leaving || one.origin != Origin::Etcd || !is_away(one.worker->condition())) continue;
    if (lingering_.contains(one.key)) over.emplace_back(one.key, "its engine is away, too");
  }
  for (const std::string& name : lingering_) {
    Key& key = keys_.find(name)->second;
    if (away) {
      key.until = now + linger_;
    } else if (now >= *key.until) {
      over.emplace_back(name, "its lease has not come back");
    }
  }
  Fleet::Changes changes;
  for (const auto& [name, reason] : over) {
    const auto key = keys_.find(name);
    if (key == keys_.end()) continue;  // both reasons hold
    log_.info("etcd_linger_over", {{"key", name}, {"reason", reason}});
    drop(key, changes);
  }
  commit(std::move(changes), lingering_.size());
}

void EtcdKeys::commit(Fleet::Changes changes, std::size_t lingered_before) {
  lingering_now_.set(static_cast<std::int64_t>(lingering_.size()));
  refused_now_.set(static_cast<std::int64_t>(refused_.size()));
  if (lingering_.size() > lingered_before) {
    log_.warning("etcd_lingering", {{"workers", static_cast<std::int64_t>(lingering_.size())},
                                    {"linger_ms", static_cast<std::int64_t>(linger_.count())}});
  }
  if (!changes.empty()) fleet_.apply(Origin::Etcd, std::move(changes));
}

}  // namespace baton::fleet
