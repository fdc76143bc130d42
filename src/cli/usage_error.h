// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace baton::cli {

// Explains why `root` could not parse the command line, names the nearest command or option if one
// is mistyped, and points to the help.
std::string usage_error(const CLI::App& root, const CLI::ParseError& problem);

}  // namespace baton::cli
