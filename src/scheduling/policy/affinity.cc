// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/affinity.h"

namespace baton::scheduling {
namespace {

// Expired sessions that one call clears away: more than it can add, and never a long wait.
constexpr int kSweep = 4;

}  // namespace

std::optional<RankId> AffinityTable::find(std::string_view session) {
  if (!enabled() || session.empty()) return std::nullopt;
  const Time now = clock_();
  const locks::Lock lock(mutex_);
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return std::nullopt;
  if (expired(entry->second, now)) {
    erase(entry);
    return std::nullopt;
  }
  return entry->second.rank;
}

AffinityTable::Lease AffinityTable::bind(std::string_view session, RankId rank) {
  if (!enabled() || session.empty()) return {};
  const Time now = clock_();
  const locks::Lock lock(mutex_);
  erase_expired(now);
  auto entry = entries_.find(session);
  if (entry == entries_.end()) {
    if (entries_.size() >= most_) {
      if (unused_.empty()) return {};
      erase(entries_.find(*unused_.front()));
    }
    entry = entries_.emplace(session, Entry{}).first;
    entry->second.binding = next_binding_++;
  } else if (entry->second.uses == 0) {
    unused_.erase(entry->second.unused);
  }
  entry->second.rank = rank;
  ++entry->second.uses;
  return Lease(*this, session, entry->second.binding);
}

void AffinityTable::unbind(std::string_view session) {
  const locks::Lock lock(mutex_);
  const auto entry = entries_.find(session);
  if (entry != entries_.end()) erase(entry);
}

std::size_t AffinityTable::size() const {
  const locks::Lock lock(mutex_);
  return entries_.size();
}

void AffinityTable::end_use(const std::string& session, std::uint64_t binding) {
  const Time now = clock_();
  const locks::Lock lock(mutex_);
  const auto entry = entries_.find(session);
  // Unbound meanwhile, and perhaps bound again by others.
  if (entry == entries_.end() || entry->second.binding != binding) return;
  if (--entry->second.uses > 0) return;
  entry->second.ended = now;
  entry->second.unused = unused_.insert(unused_.end(), &entry->first);
}

void AffinityTable::erase(Entries::iterator entry) {
  if (entry->second.uses == 0) unused_.erase(entry->second.unused);
  entries_.erase(entry);
}

void AffinityTable::erase_expired(Time now) {
  for (int i = 0; i < kSweep && !unused_.empty(); ++i) {
    const auto oldest = entries_.find(*unused_.front());
    if (!expired(oldest->second, now)) return;
    erase(oldest);
  }
}

bool AffinityTable::expired(const Entry& entry, Time now) const {
  return entry.uses == 0 && now - entry.ended >= ttl_;
}

}  // namespace baton::scheduling
