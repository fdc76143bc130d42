// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/fleet.h"
#include "fleet/source.h"
#include "model/worker.h"

#include <functional>
#include <optional>
#include <string_view>

namespace baton::fleet {

// Role. Workers that operators and their machines add, change and remove one by one.
// Confinement. The control thread.
// Lifetime. Owned by Router; the fleet outlives it.
// Invariants. Changes only its own announcements: those of other sources are changed at the source,
//   and can be drained here. All calls are idempotent.
class AdminSource final : public Source {
 public:
  explicit AdminSource(Fleet& fleet) : fleet_(fleet) {}

  // Nothing runs between two calls, and nothing can fail.
  void start() override {}
  void stop() override {}
  SourceStatus status() const override { return {.origin = Origin::Admin, .detail = {}}; }

  struct Added {
    Fleet::Member member;
    bool is_new;  // this server was not announced here for this model
  };
  // Replaces an earlier announcement of the same server and model.
  Result<Added> add(model::Announcement announcement);

  // Makes the new announcement from the worker's current one.
  using Change = std::function<Result<model::Announcement>(const model::Announcement&)>;
  Result<Fleet::Member> amend(std::string_view worker, const Change& change);

  // The worker as it is afterwards: leaving, or as another source announces it.
  Result<Fleet::Member> remove(std::string_view worker);

  // For a worker of any source: it gets no new requests, or (no longer draining) gets some again.
  Result<Fleet::Member> drain(std::string_view worker, bool draining);

  // The worker of that name, host:port or number.
  Result<Fleet::Member> find(std::string_view worker) const;

 private:
  Result<void> check_name(const model::Announcement& announcement) const;

  Fleet& fleet_;
};

}  // namespace baton::fleet
