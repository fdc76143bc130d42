// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/locks/mutex.h"
#include "libs/tokenizer/model.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace baton::tokenizer {

// Role. Idle workspaces of one model: the words they remember are good for all texts.
// Confinement. Any thread.
// Lifetime. Outlives its leases.
// Invariants. Holds as many as were in use at once, `kMost` at most.
class WorkspacePool {
 public:
  class Lease {
   public:
    explicit Lease(WorkspacePool& pool) : pool_(pool), workspace_(pool.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.put_back(std::move(workspace_)); }
    Workspace& operator*() const { return *workspace_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Workspace> workspace_;
  };

 private:
  static constexpr std::size_t kMost = 64;
  // One that a huge word has blown up is not kept.
  static constexpr std::size_t kMostSymbols = std::size_t{64} << 10;

  std::unique_ptr<Workspace> take() {
    const locks::Lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>();
    auto workspace = std::move(idle_.back());
    idle_.pop_back();
    return workspace;
  }
  void put_back(std::unique_ptr<Workspace> workspace) {
    if (workspace->symbols.capacity() > kMostSymbols || workspace->text.capacity() > kMostSymbols)
      return;
    const locks::Lock lock(mutex_);
    if (idle_.size() < kMost) idle_.push_back(std::move(workspace));
  }

  locks::Mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_ GUARDED_BY(mutex_);
};

}  // namespace baton::tokenizer
