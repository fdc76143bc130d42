// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"

namespace baton::test {

// A model whose workers get requests in turn, so that a test knows who is next.
inline config::Model model_in_turn() {
  config::Model model;
  model.policy = model::Policy::RoundRobin;
  return model;
}

}  // namespace baton::test
