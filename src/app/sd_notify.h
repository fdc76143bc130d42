// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string_view>

namespace baton::app {

// Reports this process's state to the service manager (NOTIFY_SOCKET, as sd_notify(3) does), in
// lines like "READY=1". Does nothing without a listener; never waits.
void notify_service_manager(std::string_view state);

}  // namespace baton::app
