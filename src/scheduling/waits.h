// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace baton::scheduling {

// The wait of a request: its reason, and the requests before it.
struct Waits {
  enum class For : std::uint8_t {
    Worker,   // for its best one to have time
    Workers,  // for any worker that it may go to
    Request,  // for another request that computes the common prefix
  };
  For what = For::Workers;
  std::shared_ptr<const fleet::Worker> worker;  // For::Worker
  std::optional<std::uint32_t> rank;            // of several
  std::size_t ahead = 0;                        // of its class wait already
};

}  // namespace baton::scheduling
