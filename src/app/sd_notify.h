// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string_view>

namespace baton::app {

// Tells the service manager (NOTIFY_SOCKET, as sd_notify(3) does) what becomes of this process:
// lines as "READY=1". Nothing where there is none that listens; never waits.
void notify_service_manager(std::string_view state);

}  // namespace baton::app
