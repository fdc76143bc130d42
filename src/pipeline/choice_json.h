// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/worker_booking.h"

#include <string>

namespace baton::pipeline {

// How a worker was chosen, and each candidate's cost, as JSON. Unknown and non-finite numbers are
// null.
std::string choice_json(const scheduling::Choice& choice);

}  // namespace baton::pipeline
