// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace baton::fleet {

// What etcd has under the key of a worker of the model "m". Each further field is after a comma.
inline std::string worker_value(int port, std::string_view more = "") {
  return fmt::format(R"({{"model":"m","url":"http://127.0.0.1:{}"{}}})", port, more);
}

}  // namespace baton::fleet
