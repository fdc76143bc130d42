// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <compare>
#include <cstddef>

namespace baton::scheduling {

// Permissions of the operator and of the request.
struct HandoffPermissions {
  bool disaggregate = true;        // false: one worker does both
  bool required = false;           // never serve without a prefill worker
  bool decode_may_prefill = true;  // whether this model's decode workers can serve alone
  model::OnPrefillFailure on_prefill_failure = model::OnPrefillFailure::Retry;
  std::size_t retries = 2;     // before the first token
  std::size_t migrations = 0;  // after it
  auto operator<=>(const HandoffPermissions&) const = default;
};

}  // namespace baton::scheduling
