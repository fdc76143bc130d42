// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/document.h"
#include "config/reader.h"
#include "config/routing.h"

namespace baton::config {

// Reads a model's `cost`, `conditional_prefill` and `queue`. `node` is the node of `model`.
Routing read_routing(const Node& node, const Section& model, Problems& problems);

}  // namespace baton::config
