// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "tools/loadgen/options.h"
#include "tools/loadgen/progress.h"
#include "tools/loadgen/result.h"

#include <functional>
#include <string_view>

namespace baton::loadgen {

// Finds out what there is, sends the load, and comes back when it is over: all sent and answered,
// the duration and its drain passed, or SIGINT or SIGTERM came. `tell` gets what is to be shown while
// it runs.
Result<Outcome> run_bench(const Plan& plan, Progress::Style style, unsigned width,
                          const std::function<void(std::string_view)>& tell);

}  // namespace baton::loadgen
