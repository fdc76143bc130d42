// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "scheduling/worker_booking.h"

#include <string>

namespace baton::pipeline {

// How a worker was chosen, and what each candidate would have cost, as JSON. What is not known, or is
// no finite number, is null.
std::string choice_json(const scheduling::Choice& choice);

}  // namespace baton::pipeline
