// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "telemetry/log.h"

namespace baton::app {

// The log as the configuration wants it, on standard error.
telemetry::Logger make_logger(const config::Log& log);

}  // namespace baton::app
