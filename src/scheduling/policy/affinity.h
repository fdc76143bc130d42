// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "model/worker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace baton::scheduling {

// A worker, and one of its ranks if it has several.
struct RankId {
  model::WorkerId worker;
  std::optional<std::uint32_t> rank;
  bool operator==(const RankId&) const = default;
};

// Role. Remembers each session's rank, for one role of one model.
// Confinement. Any thread; one lock, held for a few look-ups.
// Lifetime. Outlives its leases.
// Invariants. A session expires `ttl` after its last use has ended, never during one. Never more
//   than `most` sessions: a new one evicts the unused session whose last use ended first; if all
//   are in use, the new one is not remembered.
class AffinityTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Clock = std::function<Time()>;

  // One use of a session, for as long as this lives.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept
        : table_(std::exchange(other.table_, nullptr)),
          session_(std::move(other.session_)),
          binding_(other.binding_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(session_, other.session_);
      std::swap(binding_, other.binding_);
      return *this;
    }
    ~Lease() {
      if (table_ != nullptr) table_->end_use(session_, binding_);
    }

   private:
    friend class AffinityTable;
    Lease(AffinityTable& table, std::string_view session, std::uint64_t binding)
        : table_(&table), session_(session), binding_(binding) {}

    AffinityTable* table_ = nullptr;
    std::string session_;
    std::uint64_t binding_ = 0;
  };

  // `ttl` 0: remembers nothing.
  AffinityTable(std::chrono::milliseconds ttl, std::size_t most,
                Clock clock = std::chrono::steady_clock::now)
      : ttl_(ttl), most_(most), clock_(std::move(clock)) {}

  bool enabled() const { return ttl_.count() > 0; }
  std::optional<RankId> find(std::string_view session);
  // Binds the session to this rank, replacing another one. Empty sessions are not bound.
  [[nodiscard]] Lease bind(std::string_view session, RankId rank);
  // Forgets the session: its rank cannot be used any more, or this was its last request.
  void unbind(std::string_view session);
  std::size_t size() const;

 private:
  struct Entry {
    RankId rank;
    std::uint64_t binding = 0;  // tells a session from an earlier one of the same name
    std::size_t uses = 0;
    Time ended;                                      // where uses is 0
    std::list<const std::string*>::iterator unused;  // place in unused_, where uses is 0
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  void end_use(const std::string& session, std::uint64_t binding);
  void erase(Entries::iterator entry) REQUIRES(mutex_);
  void erase_expired(Time now) REQUIRES(mutex_);
  bool expired(const Entry& entry, Time now) const;

  const std::chrono::milliseconds ttl_;
  const std::size_t most_;
  const Clock clock_;
  mutable locks::Mutex mutex_;
  Entries entries_ GUARDED_BY(mutex_);
  // Keys of entries_, the longest unused first.
  std::list<const std::string*> unused_ GUARDED_BY(mutex_);
  std::uint64_t next_binding_ GUARDED_BY(mutex_) = 1;
};

}  // namespace baton::scheduling
