// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "cli/admin_client.h"
#include "core/result.h"

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace baton::cli {

// How a command reaches a running router: its flags --admin and --key-file.
struct AdminAccess {
  std::string admin = "http://127.0.0.1:8081";
  std::string key_file;
};
void add_admin_flags(CLI::App& command, AdminAccess& access);

// An error describes wrong flags; this makes no request.
Result<AdminClient> client_of(const AdminAccess& access);

// The body of the answer; an error where the router refused, in its own words.
Result<std::string> body_of(Result<AdminClient::Answer> answer);

// A name as a part of a path.
std::string percent_encoded(std::string_view name);

}  // namespace baton::cli
