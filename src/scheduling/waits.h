// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "fleet/worker.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace baton::scheduling {

// What a request would wait for.
struct Waits {
  enum class For : std::uint8_t {
    Worker,   // that its best one has time
    Workers,  // that any has of those it may go to
    Request,  // that another one has computed what both begin with
  };
  For what = For::Workers;
  std::shared_ptr<const fleet::Worker> worker;  // For::Worker
  std::optional<std::uint32_t> rank;            // of several
  std::size_t ahead = 0;                        // of its class wait already
};

}  // namespace baton::scheduling
