// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fleet/wish.h"

namespace baton::fleet {

Wish wish_for(model::Role role, const routing::Hints& hints) {
  Wish wish;
  wish.pin = role == model::Role::Prefill ? hints.prefill : hints.decode;
  wish.allowed = hints.allowed;
  wish.constraints = hints.constraints;
  return wish;
}

}  // namespace baton::fleet
